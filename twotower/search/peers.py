"""Other people's indexes behind our interface, from the extra `peers`."""

from dataclasses import dataclass
from importlib import import_module
from typing import Any, final

import numpy as np

from twotower.errors import UserError
from twotower.search.base import Index


def library(name: str) -> Any:
    """A library of the extra, or a sentence that says how to get it."""
    try:
        return import_module(name)
    except ImportError as error:
        raise UserError(f"This index needs {name}: pip install 'twotower[peers]'") from error


@final
@dataclass(eq=False)
class Faiss(Index):
    """An index of FAISS, named by its factory's string."""

    factory: str = "HNSW32"
    """For example Flat, IVF1024,Flat or HNSW32."""
    probes: int = 16
    """Cells an IVF index visits, or half the candidates an HNSW index keeps."""

    name = "faiss"

    def _build(self, latents: np.ndarray, seed: int) -> None:
        faiss = library("faiss")
        try:
            self._index = faiss.index_factory(latents.shape[1], self.factory, faiss.METRIC_INNER_PRODUCT)
        except RuntimeError as error:
            raise UserError(f"FAISS knows no index {self.factory!r}: try Flat, IVF1024,Flat or HNSW32.") from error
        self._index.train(latents)  # pyright: ignore[reportCallIssue]
        self._index.add(latents)  # pyright: ignore[reportCallIssue]
        parameters = faiss.ParameterSpace()
        for name, value in (("nprobe", self.probes), ("efSearch", 2 * self.probes)):
            if ("IVF" if name == "nprobe" else "HNSW") in self.factory:
                parameters.set_index_parameter(self._index, name, value)

    def _find(self, latents: np.ndarray) -> np.ndarray:
        return np.maximum(self._index.search(latents, 1)[1][:, 0], 0)  # -1 where it found nothing

    @property
    def nbytes(self) -> int:
        return library("faiss").serialize_index(self._index).nbytes


@final
@dataclass(eq=False)
class HnswLib(Index):
    """A navigable small-world graph of hnswlib."""

    degree: int = 16
    """M, links of a node."""
    effort: int = 64
    """ef, candidates kept while searching."""

    name = "hnswlib"

    def _build(self, latents: np.ndarray, seed: int) -> None:
        self._index = library("hnswlib").Index(space="ip", dim=latents.shape[1])
        self._index.init_index(len(latents), M=self.degree, ef_construction=200, random_seed=seed & 0x7FFFFFFF)
        self._index.set_num_threads(1)  # so that the graph does not depend on how threads met
        self._index.add_items(latents)
        self._index.set_ef(self.effort)

    def _find(self, latents: np.ndarray) -> np.ndarray:
        return self._index.knn_query(latents, 1)[0][:, 0].astype(np.int64)

    @property
    def nbytes(self) -> int:
        return self._index.index_file_size()


@final
@dataclass(eq=False)
class ScaNN(Index):
    """A tree of leaves of ScaNN, whose candidates are scored exactly."""

    leaves: int | None = None
    """Leaves of the tree; None takes √N."""
    visited: int = 16
    """Leaves that a query looks into."""

    name = "scann"

    def _build(self, latents: np.ndarray, seed: int) -> None:
        leaves = min(self.leaves or int(len(latents) ** 0.5), len(latents))
        build = library("scann.scann_ops.py.scann_ops_pybind").builder(latents, 1, "dot_product")
        if leaves > 1:
            build = build.tree(
                leaves, min(self.visited, leaves), training_sample_size=min(len(latents), 100_000), random_init=False
            )
        build = build.score_brute_force()
        build.set_n_training_threads(1)
        self._index = build.build()

    def _find(self, latents: np.ndarray) -> np.ndarray:
        answers = [self._index.search(latent)[0] for latent in latents]
        return np.array([answer[0] if len(answer) else 0 for answer in answers], np.int64)  # 0 from empty leaves

    @property
    def nbytes(self) -> int:
        return self.latents.nbytes  # the least it can be: ScaNN does not tell


@final
@dataclass(eq=False)
class USearch(Index):
    """A navigable small-world graph of USearch."""

    degree: int = 16
    """Connectivity, links of a node."""
    effort: int = 64
    """Expansion, candidates kept while searching."""

    name = "usearch"

    def _build(self, latents: np.ndarray, seed: int) -> None:
        self._index = library("usearch.index").Index(
            ndim=latents.shape[1], metric="ip", dtype="f32", connectivity=self.degree, expansion_add=128,
            expansion_search=self.effort,
        )  # fmt: skip
        self._index.add(np.arange(len(latents)), latents, threads=1)  # so that the graph is the same every time

    def _find(self, latents: np.ndarray) -> np.ndarray:
        found = [self._index.search(latent, 1, threads=1).keys for latent in latents]
        return np.array([keys[0] if len(keys) else 0 for keys in found], np.int64)

    @property
    def nbytes(self) -> int:
        return self._index.memory_usage

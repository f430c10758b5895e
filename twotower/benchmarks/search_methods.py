"""Ours and others' searches over the same latents, each by its fastest way of answering one query at a time.

A family yields, for one build, every setting of its declared grid that needs no new build.
"""

import importlib.util
import time
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from twotower.search import Auto, BoxTree, BruteForce, PaperSignedRandomProjections, Partitions
from twotower.search.peers import library
from twotower.search.scanned_subset import subset_tables

Ask = Callable[[np.ndarray], np.ndarray]  # queries (n, d) -> numbers (n,), one query after the other
EFFORTS = (16, 64, 256)
SLOW = 1.0  # seconds of a build after which a peer is not built once more with other settings


class Tried(NamedTuple):
    """One setting of a method, built."""

    setting: str
    build: float  # seconds
    ask: Ask
    facts: dict[str, Any] = {}


def build_timed(build: Callable[[], Any]) -> tuple[Any, float]:
    """What was built, and the least seconds of up to five builds within a tenth of a second."""
    seconds: list[float] = []
    built = None
    while not seconds or (len(seconds) < 5 and sum(seconds) < 0.1):
        del built
        started = time.process_time()
        built = build()
        seconds.append(time.process_time() - started)
    return built, min(seconds)


def gemv(latents: np.ndarray) -> Iterator[Tried]:
    """A matrix-vector product and argmax by NumPy, feature by feature in memory."""
    columns, seconds = build_timed(lambda: np.asfortranarray(latents))
    products = np.empty(len(latents), np.float32)

    def ask(queries: np.ndarray) -> np.ndarray:
        found = np.empty(len(queries), np.int64)
        for n, query in enumerate(queries):
            found[n] = np.dot(columns, query, out=products).argmax()
        return found

    yield Tried("column-major", seconds, ask)


def faiss_flat(latents: np.ndarray) -> Iterator[Tried]:
    """FAISS, all candidates."""
    faiss = library("faiss")

    faiss.omp_set_num_threads(1)
    faiss.cvar.distance_compute_blas_threshold = 2**30  # one query after the other, in its compiled loop

    def build() -> Any:
        index = faiss.IndexFlatIP(latents.shape[1])
        index.add(latents)
        return index

    index, seconds = build_timed(build)
    yield Tried("Flat", seconds, faiss_ask(index))


def faiss_ask(index: Any) -> Ask:
    """A FAISS index's own loop over the queries."""
    return lambda queries: index.search(queries, 1)[1][:, 0]


def faiss_ivf(latents: np.ndarray) -> Iterator[Tried]:
    """FAISS's inverted lists."""
    faiss = library("faiss")

    faiss.omp_set_num_threads(1)
    faiss.cvar.distance_compute_blas_threshold = 2**30
    seconds = 0.0
    for cells in (int(len(latents) ** 0.5), 4 * int(len(latents) ** 0.5)):
        if 40 * cells > len(latents) or seconds > SLOW:
            continue

        def build(cells: int = cells) -> Any:
            index = faiss.index_factory(latents.shape[1], f"IVF{cells},Flat", faiss.METRIC_INNER_PRODUCT)
            index.train(latents)
            index.add(latents)
            return index

        index, seconds = build_timed(build)
        for probes in (1, 4, 16):
            index.nprobe = probes
            yield Tried(f"IVF{cells}, nprobe {probes}", seconds, faiss_ask(index))


def faiss_hnsw(latents: np.ndarray) -> Iterator[Tried]:
    """FAISS's navigable small-world graph."""
    faiss = library("faiss")

    faiss.omp_set_num_threads(1)

    def build() -> Any:
        index = faiss.IndexHNSWFlat(latents.shape[1], 16, faiss.METRIC_INNER_PRODUCT)
        index.add(latents)
        return index

    index, seconds = build_timed(build)
    for effort in EFFORTS:
        index.hnsw.efSearch = effort
        yield Tried(f"HNSW16, efSearch {effort}", seconds, faiss_ask(index))


def hnswlib(latents: np.ndarray) -> Iterator[Tried]:
    """hnswlib's navigable small-world graph."""
    module = library("hnswlib")

    def build() -> Any:
        index = module.Index(space="ip", dim=latents.shape[1])
        index.init_index(len(latents), M=16, ef_construction=100)
        index.add_items(latents, num_threads=1)
        return index

    index, seconds = build_timed(build)
    for effort in EFFORTS:
        index.set_ef(effort)
        yield Tried(f"M 16, ef {effort}", seconds, lambda queries: index.knn_query(queries, 1, num_threads=1)[0][:, 0])


def usearch_exact(latents: np.ndarray) -> Iterator[Tried]:
    """USearch, all candidates."""
    metric, search = library("usearch.compiled").MetricKind.IP, library("usearch.index").search

    def ask(queries: np.ndarray) -> np.ndarray:
        return np.array([search(latents, q, 1, metric, exact=True, threads=1).keys[0] for q in queries])

    yield Tried("exact", 0.0, ask)


def usearch_hnsw(latents: np.ndarray) -> Iterator[Tried]:
    """USearch's navigable small-world graph."""
    module = library("usearch.index")

    def build() -> Any:
        index = module.Index(ndim=latents.shape[1], metric="ip", dtype="f32", connectivity=16, expansion_add=64)
        index.add(np.arange(len(latents)), latents, threads=1)
        return index

    index, seconds = build_timed(build)
    for effort in EFFORTS:
        index.expansion_search = effort
        yield Tried(
            f"connectivity 16, expansion {effort}",
            seconds,
            lambda queries: index.search(queries, 1, threads=1).keys.reshape(len(queries), -1)[:, 0],
        )


def scann_ask(index: Any, visited: int) -> Ask:
    """One call of ScaNN a query, which finds nothing in an empty leaf."""

    def ask(queries: np.ndarray) -> np.ndarray:
        answers = [index.search(query, leaves_to_search=visited)[0] for query in queries]
        return np.array([answer[0] if len(answer) else 0 for answer in answers])

    return ask


def scann(latents: np.ndarray) -> Iterator[Tried]:
    """ScaNN: a tree of leaves, scored exactly or by hashes and scored again."""
    scann_ops_pybind = library("scann.scann_ops.py.scann_ops_pybind")

    leaves = max(int(len(latents) ** 0.5), 2)
    seconds = 0.0
    for scoring in ("exact", "hashed"):
        if seconds > SLOW:
            continue

        def build(scoring: str = scoring) -> Any:
            builder: Any = scann_ops_pybind.builder(latents, 1, "dot_product")
            builder = builder.tree(leaves, max(leaves // 20, 1), training_sample_size=min(len(latents), 100_000))
            builder = builder.score_brute_force() if scoring == "exact" else builder.score_ah(2).reorder(30)
            builder.set_n_training_threads(1)
            return builder.build()

        index, seconds = build_timed(build)
        for visited in (1, 3, 10, 30):
            yield Tried(f"{leaves} leaves, {visited} visited, {scoring}", seconds, scann_ask(index, visited))


def subset(latents: np.ndarray, choose: Callable[[], np.ndarray], setting: str) -> Tried:
    """A scan of fixed members, by our kernel."""
    scan = BruteForce()
    scan.tables, seconds = build_timed(lambda: subset_tables(latents, np.sort(choose())))
    return Tried(setting, seconds, scan._find)


def random_k(latents: np.ndarray) -> Iterator[Tried]:
    """Candidates drawn blindly."""
    total = len(latents)
    for count in (256, 4096):
        if count < total:
            draw = lambda count=count: np.random.default_rng(0).choice(total, count, False)  # noqa: E731
            yield subset(latents, draw, f"k {count}")


def top_norm_k(latents: np.ndarray) -> Iterator[Tried]:
    """The longest latents."""
    for count in (256, 4096):
        if count < len(latents):

            def longest(count: int = count) -> np.ndarray:
                return np.argpartition(np.einsum("nd,nd->n", latents, latents), -count)[-count:]

            yield subset(latents, longest, f"k {count}")


def srp_paper(latents: np.ndarray) -> Iterator[Tried]:
    """The paper's signed random projections with its own numbers."""
    index, seconds = build_timed(lambda: PaperSignedRandomProjections().build(latents))
    yield Tried("as it stands", seconds, index._find)


def brute_force(latents: np.ndarray) -> Iterator[Tried]:
    """Our scan of all candidates."""
    index, seconds = build_timed(lambda: BruteForce().build(latents))
    yield Tried("exact", seconds, index._find)


def box_tree(latents: np.ndarray) -> Iterator[Tried]:
    """Our branch and bound."""
    for regret in (0.0, 0.01):
        index, seconds = build_timed(lambda regret=regret: BoxTree(regret=regret).build(latents))
        yield Tried(f"regret {regret:g}", seconds, index._find)


@cache
def compile_ours() -> None:
    """Compile our kernels, as other people's come compiled."""
    latents = np.random.default_rng(0).normal(size=(2000, 3)).astype(np.float32)
    for index in (BruteForce(), BoxTree(), Partitions(), Auto(1e9, 0.1), Auto(1e9, 0.1, latents[:200])):
        index.build(latents).query(latents[0])


def auto(latents: np.ndarray, past: np.ndarray | None, asked: float, regret: float) -> Tried:
    """`auto`, told how much will be asked, what regret is allowed, and what was asked before."""
    index, seconds = build_timed(lambda: Auto(asked, regret, past).build(latents))
    facts = {"queries_per_build": asked, "wanted_regret": regret, "choice": str(index.choice)}
    return Tried(index.choice.method, seconds, index._find, facts)


OURS: dict[str, Callable[[np.ndarray], Iterator[Tried]]] = {"brute_force": brute_force, "box_tree": box_tree}
PEERS: dict[str, tuple[str | None, Callable[[np.ndarray], Iterator[Tried]]]] = {
    "gemv": (None, gemv),
    "faiss_flat": ("faiss", faiss_flat),
    "faiss_ivf": ("faiss", faiss_ivf),
    "faiss_hnsw": ("faiss", faiss_hnsw),
    "hnswlib": ("hnswlib", hnswlib),
    "scann": ("scann", scann),
    "usearch_exact": ("usearch", usearch_exact),
    "usearch_hnsw": ("usearch", usearch_hnsw),
    "random_k": (None, random_k),
    "top_norm_k": (None, top_norm_k),
    "srp_paper": (None, srp_paper),
}


def missing(package: str | None) -> bool:
    """Whether a peer's package is not installed."""
    return package is not None and importlib.util.find_spec(package) is None

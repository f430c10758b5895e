"""What holds for every index: an answer in range whatever the latents, the same one whenever it is asked."""

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twotower.errors import UserError
from twotower.files import sealed_file
from twotower.randomness import generator
from twotower.search import METHODS, DirectionalCoreset, Index, load
from twotower.search.base import CompiledIndex

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "auto": ("auto", {}),
    "auto, exact": ("auto", {"regret": 0.0}),
    "auto, many queries": ("auto", {"queries_per_build": 1e9}),
    "brute_force": ("brute_force", {}),
    "box_tree": ("box_tree", {}),
    "box_tree within 5 %": ("box_tree", {"regret": 0.05}),
    "coreset": ("coreset", {"directions": 40}),
    "coreset within 2 %": ("coreset", {"directions": 400, "regret": 0.02}),
    "hull": ("hull", {}),
    "partitions": ("partitions", {}),
    "partitions within 0.1 %": ("partitions", {"regret": 0.001}),
    "srp": ("srp", {}),
    "srp 12 bits": ("srp", {"bits": 12, "budget": 3}),
    "srp_ranges": ("srp_ranges", {}),
    "srp_ranges 3 bits": ("srp_ranges", {"bits": 3, "budget": 5, "ranges": 9}),
    "srp_paper": ("srp_paper", {}),
    "srp_paper 9 bits": ("srp_paper", {"bits": 9}),
    "rft": ("rft", {"features": 16, "leaf": 5}),
    "rft modal": ("rft", {"features": 16, "leaf": 1, "samples": 0, "kind": "favor"}),
    "rft cosine": ("rft", {"features": 16, "normalise": True, "temperature": 0.1}),
    "lazy_gumbel": ("lazy_gumbel", {"temperature": 0.1}),
    "faiss": ("faiss", {}),
    "faiss flat": ("faiss", {"factory": "Flat"}),
    "hnswlib": ("hnswlib", {}),
    "scann": ("scann", {}),
    "scann 3 of 9 leaves": ("scann", {"leaves": 9, "visited": 3}),
    "usearch": ("usearch", {}),
}


@pytest.fixture(params=CASES, scope="module")
def case(request: pytest.FixtureRequest) -> str:
    if request.param.split()[0] in ("faiss", "hnswlib", "scann", "usearch"):
        pytest.importorskip(request.param.split()[0])
    return request.param


def index_of(case: str) -> Index:
    name, options = CASES[case]
    return METHODS[name](**options)


def test_every_method_is_here() -> None:
    assert {name for name, _ in CASES.values()} == METHODS.keys()


@st.composite
def latents_and_queries(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Latents (N, d) and queries (4, d): of any scale, mixed scales, all equal, all zero, of equal norm, repeated."""
    size, random = draw(st.integers(1, 3)), generator(draw(st.integers(0, 2**32)))
    distinct = random.normal(size=(draw(st.integers(1, 9)), size))
    if draw(st.booleans()):
        distinct /= np.linalg.norm(distinct, axis=1, keepdims=True)
    distinct *= 10.0 ** draw(st.sampled_from([-30, -10, 0, 10, 30]))
    distinct[:: draw(st.integers(1, 9))] *= draw(st.sampled_from([0.0, 1.0, 1e-30]))
    latents = distinct[random.integers(0, len(distinct), draw(st.sampled_from([1, 2, 3, 17, 65, 300, 1100])))]
    queries = random.normal(size=(4, size)) * 10.0 ** draw(st.sampled_from([-30, 0, 30]))
    queries[0] = 0
    return latents, queries


@settings(max_examples=15, deadline=None)
@given(latents_and_queries())
def test_an_answer_is_a_candidate_whatever_the_latents(case: str, given: tuple[np.ndarray, np.ndarray]) -> None:
    latents, queries = given
    index = index_of(case).build(latents, seed=3)
    assert len(index) == len(latents) and index.nbytes > 0
    found = index.query_batch(queries)
    assert found.dtype == np.int64 and found.shape == (4,)
    assert (found >= 0).all() and (found < len(latents)).all()
    assert [index.query(query) for query in queries] == found.tolist()
    assert np.array_equal(index_of(case).build(latents, seed=3).query_batch(queries), found)
    assert index.query_batch(queries[:0]).shape == (0,)


@settings(max_examples=15, deadline=None)
@given(latents_and_queries())
def test_exact_methods_find_the_best_at_any_scale(case: str, given: tuple[np.ndarray, np.ndarray]) -> None:
    latents, queries = (array.astype(np.float32).astype(np.float64) for array in given)
    index = index_of(case)
    if not index.exact and case != "hull":
        return
    found = index.build(latents).query_batch(queries)
    products = queries @ latents.T
    scale = np.abs(queries).max(axis=1) * np.abs(latents).max()
    assert (products.max(axis=1) - products[np.arange(4), found] <= 1e-5 * scale).all()


def test_regret_is_small_where_a_method_promises_it(case: str) -> None:
    latents, queries = generator(1).normal(size=(3000, 3)), generator(2).normal(size=(60, 3))
    regrets = index_of(case).build(latents).regrets(queries)
    assert regrets.shape == (60,) and (regrets >= -1e-6).all()
    bars = {
        "auto": 0.01,
        "auto, many queries": 0.01,
        "coreset": 0.03,
        "coreset within 2 %": 0.02,
        "partitions": 0.01,
        "partitions within 0.1 %": 0.001,
        "srp": 0.1,
        "box_tree within 5 %": 0.05,
        "faiss": 0.05,
        "hnswlib": 0.05,
        "scann": 0.05,
        "usearch": 0.05,
    }
    exact = index_of(case).exact or case in ("hull", "faiss flat")
    assert regrets.mean() <= (1e-6 if exact else bars.get(case, 1.0))


def test_an_index_keeps_what_it_was_built_on(case: str) -> None:
    latents = generator(0).normal(size=(300, 2)).astype(np.float32)
    queries = generator(1).normal(size=(20, 2))
    index = index_of(case).build(latents)
    before = index.query_batch(queries)
    latents[:] = 0
    assert np.array_equal(index.query_batch(queries), before)
    assert index.build(latents[:3]) is index and len(index) == 3 and index.query(queries[0]) < 3


def test_a_saved_index_answers_alike(case: str, tmp_path: Path) -> None:
    random = generator(4)
    latents, queries = random.normal(size=(700, 3)), random.normal(size=(50, 3))
    index = index_of(case).build(latents, seed=9)
    index.save(tmp_path / "index.safetensors")
    loaded = load(tmp_path / "index.safetensors")
    assert type(loaded) is type(index)
    assert np.array_equal(loaded.query_batch(queries), index.query_batch(queries))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_none_are_refused(case: str, value: float) -> None:
    latents, query = np.ones((20, 3)), np.ones(3)
    index = index_of(case).build(latents)
    query[1] = value
    with pytest.raises(UserError, match="queries must be finite"):
        index.query(query)
    latents[7, 1] = value
    with pytest.raises(UserError, match="latents must be finite"):
        index.build(latents)


@pytest.mark.parametrize("latents", [np.zeros((0, 3)), np.zeros((3, 0)), np.zeros(3)])
def test_latents_of_no_use_are_refused(case: str, latents: np.ndarray) -> None:
    with pytest.raises(UserError, match="must be a matrix"):
        index_of(case).build(latents)


def test_queries_of_another_size_are_refused(case: str) -> None:
    index = index_of(case).build(np.ones((4, 3)))
    for query in (np.zeros(2), np.zeros((1, 3)), np.float64(1)):
        with pytest.raises(UserError, match="query must have shape \\(3,\\)"):
            index.query(query)  # pyright: ignore[reportArgumentType]
    with pytest.raises(UserError, match="queries must have shape \\(n, 3\\)"):
        index.query_batch(np.zeros((5, 2)))


def test_tables_have_the_same_shapes_for_any_latents(case: str) -> None:
    shapes = set()
    for latents in (np.zeros((700, 3)), generator(2).normal(size=(700, 3)), np.ones((700, 3))):
        index = index_of(case).build(latents)
        if isinstance(index, CompiledIndex):
            shapes.add(tuple((table.shape, str(table.dtype)) for table in index.tables))
    assert len(shapes) <= 1 or case == "hull"


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("box_tree", {"regret": 1.0}, "regret must be at least 0 and less than 1"),
        ("coreset", {"directions": 0}, "directions must be at least 1"),
        ("coreset", {"regret": 0.0}, "regret must be between 0 and 1"),
        ("partitions", {"regret": 0.0}, "regret must be between 0 and 1"),
        ("auto", {"regret": 1.0}, "regret must be at least 0 and less than 1"),
        ("auto", {"queries_per_build": 0}, "queries_per_build must be at least 1"),
        ("srp", {"bits": 0}, "bits must be between 1 and 20"),
        ("srp_ranges", {"ranges": 0}, "ranges must be between 1 and 1024"),
        ("srp_paper", {"budget": 0}, "budget must be at least 1"),
        ("rft", {"temperature": 0.0}, "temperature must be a positive number"),
        ("lazy_gumbel", {"temperature": np.inf}, "temperature must be a positive number"),
        ("rft", {"features": 0}, "features must be at least 1"),
        ("rft", {"samples": -1}, "samples must be 0 or more"),
        ("rft", {"kind": "other"}, "kind must be optimal or favor"),
    ],
)
def test_options_without_sense_are_refused(name: str, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        METHODS[name](**options)


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twotower.search.peers.import_module", lambda name: importlib.import_module(f"no_{name}"))
    with pytest.raises(UserError, match="needs faiss: pip install 'twotower\\[peers\\]'"):
        METHODS["faiss"]().build(np.ones((3, 2)))


def test_past_queries_come_back_from_the_file(tmp_path: Path) -> None:
    queries = generator(5).normal(size=(9, 4))
    DirectionalCoreset(directions=3, queries=queries).build(generator(6).normal(size=(99, 4))).save(tmp_path / "x")
    loaded = load(tmp_path / "x")
    assert isinstance(loaded, DirectionalCoreset) and np.array_equal(np.asarray(loaded.queries), queries)


@pytest.mark.parametrize(
    ("name", "options"),
    [("auto", {"queries_per_build": 1e9}), ("partitions", {}), ("coreset", {}), ("coreset", {"regret": 0.1})],
)
def test_past_queries_without_sense_are_refused(name: str, options: dict[str, Any]) -> None:
    latents = generator(0).normal(size=(3000, 4))
    for queries, sentence in (
        (np.ones((9, 5)), "past queries must have shape"),
        (np.ones(4), "past queries must have shape"),
        (np.full((9, 4), np.nan), "past queries must be finite"),
    ):
        with pytest.raises(UserError, match=sentence):
            METHODS[name](**options, queries=queries).build(latents)


@pytest.mark.parametrize(
    "text",
    [
        "{}", "[]", '{"method": "no", "options": {}, "seed": 0}', '{"method": "srp", "options": [], "seed": 0}',
        '{"method": "coreset", "options": {"directions": 2147483648}, "seed": 0}',
        '{"method": "srp_ranges", "options": {"ranges": 4.5}, "seed": 0}',
        f'{{"method": "auto", "options": {{"queries_per_build": {10**400}}}, "seed": 0}}', "[" * 100_000,
    ],
)  # fmt: skip
def test_a_file_that_describes_no_index_is_refused(tmp_path: Path, text: str) -> None:
    sealed_file.save(tmp_path / "x", "index", {"latents": np.ones((2, 2), np.float32)}, text)
    with pytest.raises(UserError, match="does not describe an index"):
        load(tmp_path / "x")


def test_compiled_indexes_count_the_candidates_they_score(case: str) -> None:
    index = index_of(case).build(generator(2).normal(size=(3000, 3)))
    index.query_batch(generator(3).normal(size=(40, 3)))
    if isinstance(index, CompiledIndex):
        assert index.visited.shape == (40,) and (index.visited >= 1).all()
        most = 3072 if case == "brute_force" else 1600  # whole tiles
        assert index.visited.mean() <= most

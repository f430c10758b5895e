"""Exact search finds the first of the best, whatever the latents look like."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from twotower.kernels.layout import TILE
from twotower.randomness import generator
from twotower.search import METHODS, BruteForce

# Small integers: products are exact in float32, so that ties are ties for both.
SMALL = st.integers(-3, 3).map(float)


@st.composite
def tied_latents(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Latents (N, d) full of ties and duplicates, and a query (d,)."""
    size = draw(st.integers(1, 9))
    distinct = draw(arrays(np.float64, (draw(st.integers(1, 6)), size), elements=SMALL))
    count = draw(st.sampled_from([1, 2, 7, TILE - 1, TILE, TILE + 1, 2 * TILE + 3]))
    rows = generator(draw(st.integers(0, 99))).integers(0, len(distinct), count)
    return distinct[rows], draw(arrays(np.float64, size, elements=SMALL))


@given(tied_latents())
def test_the_first_of_the_best_is_found(case: tuple[np.ndarray, np.ndarray]) -> None:
    latents, query = case
    index = BruteForce().build(latents)
    assert len(index) == len(latents)
    assert index.query(query) == int(np.argmax(latents @ query))


@pytest.mark.parametrize("count", [1, TILE, TILE + 1, 3000])
def test_real_latents(count: int) -> None:
    latents, queries = generator(count).normal(size=(count, 6)), generator(1).normal(size=(50, 6))
    index = BruteForce().build(latents)
    found = index.query_batch(queries)
    scores = queries @ latents.T
    np.testing.assert_allclose(scores[np.arange(50), found], scores.max(axis=1), atol=1e-5)
    assert found.dtype == np.int64 and found.tolist() == [index.query(query) for query in queries]


def test_nothing_but_padding_scores_less_than_all_candidates() -> None:
    # Padded rows are zero: they would win over candidates that all score below.
    assert BruteForce().build(-np.arange(1.0, 6.0)[:, None]).query(np.ones(1)) == 0


def test_zero_latents_answer_the_first() -> None:
    assert BruteForce().build(np.zeros((700, 3))).query(np.ones(3)) == 0
    assert BruteForce().build(generator(0).normal(size=(700, 3))).query(np.zeros(3)) == 0


def test_the_registry_names_the_methods() -> None:
    assert METHODS["brute_force"] is BruteForce

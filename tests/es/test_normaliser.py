"""Running statistics are those of all observations together, however they came."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from twotower.es import Moments


@given(st.lists(st.integers(0, 40), min_size=1, max_size=6), st.sampled_from([0.0, 1e3]), st.integers(0, 99))
def test_moments_in_parts_are_the_moments_of_all(sizes: list[int], offset: float, seed: int) -> None:
    random = np.random.default_rng(seed)
    parts = [offset + random.normal(size=(size, 3)) * [1.0, 0.1, 30.0] for size in sizes]
    moments, seen = Moments.none(3), np.concatenate(parts)
    for part in parts:
        moments = moments.with_observations(part)
    assert moments.seen == len(seen)
    if len(seen):
        np.testing.assert_allclose(moments.mean, seen.mean(axis=0), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(moments.squares / len(seen), seen.var(axis=0), rtol=1e-3, atol=1e-6)


def test_normalised_observations_have_mean_nought_and_deviation_one() -> None:
    seen = np.random.default_rng(0).normal(5, 3, size=(1000, 2))
    normalised = Moments.none(2).with_observations(seen).normaliser()(seen)
    np.testing.assert_allclose(normalised.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(normalised.std(axis=0), 1, atol=1e-6)


def test_a_constant_is_mapped_to_nought_and_nothing_seen_to_itself() -> None:
    normaliser = Moments.none(1).with_observations(np.full((9, 1), 7.0)).normaliser()
    assert normaliser(np.array([7.0])) == 0 and np.isfinite(normaliser.scale).all()
    assert Moments.none(1).normaliser()(np.array([7.0])) == 7

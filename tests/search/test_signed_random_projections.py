"""The statistics and the order that hashing rests on, and the paper's choices against ours."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from twotower.kernels import hashing
from twotower.randomness import generator
from twotower.search import NormRangingProjections, PaperSignedRandomProjections, SignedRandomProjections
from twotower.search.projections import orthogonal_projections
from twotower.search.signed_random_projections import Hashing, lift

FINITE = st.floats(-1e3, 1e3, allow_subnormal=False)


def pair(angle: float, size: int = 7) -> tuple[np.ndarray, np.ndarray]:
    """Two vectors at an angle."""
    axes = np.linalg.qr(generator(3).normal(size=(size, 2)))[0].T
    return axes[0], np.cos(angle) * axes[0] + np.sin(angle) * axes[1]


def agreements(projections: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return (projections @ x >= 0) == (projections @ y >= 0)


@pytest.mark.parametrize("angle", [0.1, 0.5, np.pi / 3, 2.0, 3.0])
def test_bits_collide_with_the_angles_probability(angle: float) -> None:
    """5 standard errors of 14,000 orthogonal bits, fewer than of independent ones: false alarms below 1e-6."""
    x, y = pair(angle)
    bits = np.concatenate([agreements(orthogonal_projections(14, 7, seed), x, y) for seed in range(1000)])
    expected = 1 - angle / np.pi
    assert abs(bits.mean() - expected) < 5 * np.sqrt(expected * (1 - expected) / bits.size)


@pytest.mark.parametrize("angle", [0.5, np.pi / 3, 2.0])
def test_orthogonal_projections_estimate_angles_with_less_variance(angle: float) -> None:
    """The ratio of variances is near 0.8 here; over 4,000 repetitions its standard error is 0.03."""
    x, y = pair(angle)
    orthogonal = [agreements(orthogonal_projections(7, 7, seed), x, y).mean() for seed in range(4000)]
    independent = [agreements(generator(seed, 1).normal(size=(7, 7)), x, y).mean() for seed in range(4000)]
    assert np.var(orthogonal) < 0.93 * np.var(independent)


def test_projections_are_standard_normal_and_orthogonal_within_blocks() -> None:
    """Second moments of 2,000 blocks: an entry's standard error is 0.03."""
    blocks = np.array([orthogonal_projections(5, 3, seed) for seed in range(2000)])
    gram = blocks[:, :3] @ blocks[:, :3].transpose(0, 2, 1)
    np.testing.assert_allclose(gram - np.einsum("bii->bi", gram)[:, :, None] * np.eye(3), 0, atol=1e-12)
    np.testing.assert_allclose(np.einsum("bki,bkj->kij", blocks, blocks) / 2000, [np.eye(3)] * 5, atol=0.15)
    assert np.abs(blocks[:, 0] @ np.array([1.0, 0, 0])).max() > 1 and np.abs(blocks.mean(axis=0)).max() < 0.12


@given(arrays(np.float64, st.tuples(st.integers(1, 20), st.integers(1, 5)), elements=FINITE), st.data())
def test_the_lift_preserves_products_and_equals_norms(latents: np.ndarray, data: st.DataObject) -> None:
    query = data.draw(arrays(np.float64, latents.shape[1], elements=FINITE))
    longest = np.square(latents).sum(axis=1).max()
    lifted = lift(latents, longest)
    np.testing.assert_allclose(lifted @ np.append(query, 0.0), latents @ query, rtol=1e-12, atol=1e-9)
    norms = np.linalg.norm(latents, axis=1)
    np.testing.assert_allclose(np.linalg.norm(lifted, axis=1), norms.max(), rtol=1e-9)


def probed(index: Hashing, query: np.ndarray) -> list[int]:
    """The hashes of the buckets in the order in which they are opened, by opening more and more of them."""
    _, numbers, keys, starts, _, projections, offsets, weighted, _ = (table[0] for table in index.tables)
    signs, agreement = np.empty(len(offsets), np.float32), np.empty(len(keys), np.float32)
    hashing.project(query.astype(np.float32), projections, offsets, bool(weighted), signs)
    used = hashing.agree(signs, keys, agreement)
    assert numbers.size == starts[0, used]
    return keys[np.argsort(-agreement[:used], kind="stable")].tolist()


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 8), st.integers(2, 400))
def test_the_papers_buckets_are_opened_by_hamming_distance_then_key(seed: int, bits: int, count: int) -> None:
    random = generator(seed)
    latents, query = random.normal(size=(count, 4)), random.normal(size=4)
    index = PaperSignedRandomProjections(bits=bits).build(latents)
    projections = orthogonal_projections(bits, 5, 0)
    candidates = latents.astype(np.float32).astype(np.float64)
    medians = np.median(lift(candidates, np.square(candidates).sum(axis=1).max()) @ projections.T, axis=0)
    query_hash = int((np.append(query, 0) @ projections.T >= medians) @ (1 << np.arange(bits)))
    opened = probed(index, query)
    assert opened == sorted(opened, key=lambda key: (bin(key ^ query_hash).count("1"), key))


@pytest.mark.parametrize("method", [PaperSignedRandomProjections, SignedRandomProjections])
@pytest.mark.parametrize("budget", [1, 7, 64, 300, 5000])
def test_the_first_candidates_of_that_order_are_scored_and_no_more(method: type[Hashing], budget: int) -> None:
    latents, queries = generator(1).normal(size=(2000, 5)), generator(2).normal(size=(40, 5))
    index = method(bits=6, budget=budget).build(latents)
    _, numbers, keys, starts = (table[0] for table in index.tables[:4])
    for query in queries:
        order = [
            numbers[starts[0, b] : starts[0, b + 1]] for key in probed(index, query) for b in [keys.tolist().index(key)]
        ]
        reached = np.concatenate(order)[:budget]
        assert index.query(query) == reached[np.argmax((latents @ query)[reached])]
        assert np.array_equal(index.looked_at(query), reached)
        assert index.visited.tolist() == [len(reached)]
        assert index.buckets.tolist() == [1 + (np.cumsum([len(bucket) for bucket in order]) < budget)[:-1].sum()]


def test_ranges_are_lifted_apart_and_opened_by_norm_times_agreement() -> None:
    random = generator(3)
    latents = random.normal(size=(900, 4)) * np.exp(random.normal(size=(900, 1)))
    index = NormRangingProjections(bits=3, budget=100, ranges=5).build(latents, seed=2)
    centred = latents.astype(np.float32) - latents.astype(np.float32).mean(axis=0, dtype=np.float64)
    projections = orthogonal_projections(3, 5, 2)
    ordered = np.array_split(np.argsort(np.linalg.norm(centred, axis=1)), 5)
    query = random.normal(size=4)
    promises, buckets = [], []
    for part in ordered:
        squares = np.square(centred[part]).sum(axis=1)
        bits = lift(centred[part], squares.max()) @ projections.T >= 0
        for key in range(8):
            inside = np.sort(part[(bits == (key >> np.arange(3) & 1)).all(axis=1)])
            signs = np.where(key >> np.arange(3) & 1, 1, -1)
            if len(inside):
                promises.append(squares.max() ** 0.5 * (signs * (projections[:, :4] @ query)).sum())
                buckets.append(inside)
    expected = np.concatenate([buckets[n] for n in np.argsort(promises)[::-1]])[:100]
    assert np.array_equal(index.looked_at(query), expected)
    assert index.query(query) == expected[np.argmax((latents @ query)[expected])]


def test_the_papers_hash_has_buckets_of_256_and_medians_fill_them_evenly() -> None:
    index = PaperSignedRandomProjections().build(generator(1).normal(size=(2**14, 6)))
    _, _, keys, starts, _, projections, _, _, budget = (table[0] for table in index.tables)
    assert projections.shape == (6, 6) and budget == 256 and len(keys) == 64
    halves = [np.diff(starts[0])[(keys >> bit & 1) == 1].sum() for bit in range(6)]
    assert halves == [2**13] * 6


def test_ours_regrets_less_than_the_papers_and_than_random_candidates() -> None:
    random = generator(5)
    ours, ranged, papers, chance = [], [], [], []
    for seed in range(5):
        hidden = np.maximum(random.uniform(-1, 1, (2**14, 6)) @ random.normal(size=(6, 6)), 0)
        latents, queries = hidden @ random.normal(size=(6, 6)), random.normal(size=(40, 6))
        ours.append(SignedRandomProjections().build(latents, seed).regrets(queries).mean())
        ranged.append(NormRangingProjections().build(latents, seed).regrets(queries).mean())
        papers.append(PaperSignedRandomProjections().build(latents, seed).regrets(queries).mean())
        products = queries @ latents.T
        best, found = products.max(axis=1), products[:, random.integers(0, 2**14, 256)].max(axis=1)
        chance.append(((best - found) / (best - products.mean(axis=1))).mean())
    assert np.mean(ours) < 0.75 * np.mean(chance) and np.mean(ours) < 0.6 * np.mean(papers)
    assert np.mean(ranged) < 0.6 * np.mean(ours)

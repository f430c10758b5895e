"""Layers, maxima and bookkeeping against one line of NumPy each."""

import numpy as np
import pytest

from twotower.kernels import layers
from twotower.kernels.account import account, observe
from twotower.kernels.layout import LANES, TILE, padded
from twotower.randomness import generator
from twotower.towers import activate


def normal(seed: int, *shape: int) -> np.ndarray:
    return generator(seed).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("inputs", [1, 2, 3, 4, 5, 6, 7, 8, 11])  # every path through the unrolled loops
@pytest.mark.parametrize("stride", [0, 3])
def test_dense_tile_is_a_matrix_product(inputs: int, stride: int) -> None:
    outputs, start = 3, 2
    weights, x = normal(inputs, start + outputs * (inputs + stride)), normal(1, inputs + 1, TILE)
    y = np.full((outputs + 1, TILE), 7, np.float32)
    layers.dense_tile(weights, start, inputs + stride, inputs, outputs, x, y)
    matrix = weights[start:].reshape(outputs, inputs + stride)[:, :inputs]
    np.testing.assert_allclose(y[:outputs], matrix @ x[:inputs], rtol=1e-5, atol=1e-5)
    assert (y[outputs] == 7).all()


def test_dense_vector_is_a_matrix_product() -> None:
    weights, x, y = normal(0, 2 + 3 * 5), generator(1).normal(size=7), np.full(4, 7.0)
    layers.dense_vector(weights, 2, 5, 3, x, y)
    np.testing.assert_allclose(y, [*(weights[2:].reshape(3, 5).astype(float) @ x[:5]), 7], rtol=1e-12)


@pytest.mark.parametrize(("code", "name"), [(layers.LINEAR, "linear"), (layers.RELU, "relu"), (layers.TANH, "tanh")])
def test_activations(code: int, name: str) -> None:
    tile, vector = normal(2, 3, TILE), generator(3).normal(size=5)
    expected_tile, expected_vector = tile.copy(), vector.copy()
    expected_tile[:2], expected_vector[:4] = activate(name, tile[:2]), activate(name, vector[:4])
    layers.activate_tile(code, 2, tile)
    layers.activate_vector(code, 4, vector)
    np.testing.assert_allclose(tile, expected_tile, rtol=1e-6)
    np.testing.assert_allclose(vector, expected_vector, rtol=1e-12)


def test_the_maximum_is_found_in_every_lane_and_its_first_position() -> None:
    lanes = np.zeros(LANES, np.float32)
    for position in range(TILE):
        scores = -1 - np.abs(normal(position, TILE))
        scores[position :: LANES + 1] = -0.5
        assert layers.tile_maximum(scores, lanes) == np.float32(-0.5)
        assert layers.first_index(scores, np.float32(-0.5)) == position


def test_padded_is_whole_tiles() -> None:
    assert [padded(n) for n in (1, TILE - 1, TILE, TILE + 1, 1000)] == [TILE, TILE, TILE, 2 * TILE, 1024]


def test_account_sums_what_playing_slots_earn() -> None:
    slots = np.array([0, 2, 3], np.int32)
    totals, discounted, saturations = np.zeros(4), np.zeros(4), np.zeros(4)
    weights, lengths = np.ones(4), np.zeros(4, np.int64)
    sums = (totals, discounted, weights, lengths, saturations)
    low, span = np.float32([-2, 0, 5]), np.float32([4, 1, 0])  # the third dimension has no width
    actions = np.array([[2, 1, 5], [0, 0.5, 5], [-2, 0.5, 5]])
    none, some, two = np.zeros(3, bool), np.array([False, True, False]), np.array([True, True, False])
    assert not account(slots, np.array([1.0, 2, 3]), none, none, actions, 0.5, 0.25, low, span, *sums)
    assert account(slots, np.array([1.0, 2, 3]), some, none, actions, 0.5, 0.25, low, span, *sums)  # one is done
    assert account(slots, np.array([9.0, 9, 3]), none, two, actions, 0.5, 0.25, low, span, *sums)  # two start
    assert totals.tolist() == [2, 0, 4, 9]
    assert discounted.tolist() == [1.5 - 0.375, 0, 3 - 0.375, 5.25 - 0.4375]  # without a bonus of 1/4 a step
    assert weights.tolist() == [0.25, 1, 0.25, 0.125]
    assert lengths.tolist() == [2, 0, 2, 3]
    np.testing.assert_allclose(saturations, [4 / 3, 0, 0, 1])


def test_account_takes_the_indices_of_a_discrete_space() -> None:
    slots, empty, sums = np.zeros(1, np.int32), np.zeros(0, np.float32), [np.zeros(1) for _ in range(3)]
    weights, lengths = np.ones(1), np.zeros(1, np.int64)
    account(
        slots, np.ones(1), np.zeros(1, bool), np.zeros(1, bool), np.zeros((1, 1), np.int64), 1.0, 0.0, empty, empty,
        sums[0], sums[1], weights, lengths, sums[2],
    )  # fmt: skip
    assert (sums[0][0], lengths[0], sums[2][0]) == (1, 1, 0)


def test_observe_normalises_and_sums_what_acting_slots_see() -> None:
    slots, mean, scale = np.array([0, 2], np.int32), np.array([1.0, -1.0]), np.array([2.0, 0.5])
    sums, squares, normalised = np.zeros((3, 2)), np.zeros((3, 2)), np.zeros((2, 2))
    for _ in range(2):
        observe(slots, np.array([[1.0, 1.0], [4.0, -1.0]]), mean, scale, sums, squares, normalised)
    assert normalised.tolist() == [[0, 1], [6, 0]]
    assert sums.tolist() == [[0, 4], [0, 0], [6, 0]]
    assert squares.tolist() == [[0, 8], [0, 0], [18, 0]]

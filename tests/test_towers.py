"""Bias-free towers: their size and what they compute."""

import numpy as np
import pytest

from twotower.randomness import generator
from twotower.towers import activate, forward, num_params


@pytest.mark.parametrize(
    ("sizes", "count"), [((4, 1), 4), ((8, 2, 2), 20), ((17, 6, 6, 6), 174), ((3,), 0), ((18, 1), 18)]
)
def test_num_params(sizes: tuple[int, ...], count: int) -> None:
    assert num_params(sizes) == count


def test_forward_multiplies_row_major_matrices_in_order() -> None:
    theta = np.arange(1.0, 11.0)  # W₁ (2, 3) = 1 … 6, W₂ (2, 2) = 7 … 10
    x = np.array([[1.0, 0.0, -2.0]])  # W₁ x = (-5, -8)
    assert forward(theta, (3, 2, 2), "linear", x).tolist() == [[7 * -5 + 8 * -8, 9 * -5 + 10 * -8]]
    assert forward(-theta, (3, 2, 2), "relu", x).tolist() == [[-99, -125]]  # W₁ x = (5, 8)
    assert forward(theta, (3, 2, 2), "relu", x).tolist() == [[0, 0]]


@pytest.mark.parametrize("activation", ["relu", "linear", "tanh"])
def test_outputs_are_linear_and_hidden_layers_are_not(activation: str) -> None:
    random = generator(0)
    theta, x = random.normal(size=3 * 5 + 5 * 4), random.normal(size=(7, 3))
    hidden = x @ theta[:15].reshape(5, 3).T
    hidden = {"relu": hidden * (hidden > 0), "linear": hidden, "tanh": np.tanh(hidden)}[activation]
    np.testing.assert_allclose(forward(theta, (3, 5, 4), activation, x), hidden @ theta[15:].reshape(4, 5).T)
    single = forward(theta[:15], (3, 5), activation, x)
    assert (single < 0).any() and np.abs(single).max() > 1  # nothing squashed a network of one matrix


def test_activations() -> None:
    x = np.array([-2.0, 0.0, 3.0])
    assert activate("relu", x).tolist() == [0, 0, 3]
    assert activate("linear", x) is x
    assert activate("tanh", x).tolist() == np.tanh(x).tolist()

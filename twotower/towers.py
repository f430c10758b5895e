"""Bias-free multilayer perceptrons over a flat θ: sizes, parameter counts and the NumPy reference."""

import numpy as np

Sizes = tuple[int, ...]


def num_params(sizes: Sizes) -> int:
    """How many weights a bias-free network of these layer sizes has."""
    return sum(inputs * outputs for inputs, outputs in zip(sizes, sizes[1:], strict=False))


def is_finite(theta: np.ndarray) -> bool:
    """Whether all parameters are finite in the kernels' single precision too."""
    return bool((np.abs(theta) <= np.finfo(np.float32).max).all())


def forward(theta: np.ndarray, sizes: Sizes, activation: str, x: np.ndarray) -> np.ndarray:
    """The network's outputs (n, sizes[-1]) for inputs x (n, sizes[0]); hidden layers are activated."""
    start = 0
    for layer, (inputs, outputs) in enumerate(zip(sizes, sizes[1:], strict=False)):
        weights = theta[start : start + inputs * outputs].reshape(outputs, inputs)
        x = x @ weights.T
        if layer < len(sizes) - 2:
            x = activate(activation, x)
        start += inputs * outputs
    return x


def activate(activation: str, x: np.ndarray) -> np.ndarray:
    """Apply a named activation."""
    if activation == "relu":
        return np.maximum(x, 0)
    return np.tanh(x) if activation == "tanh" else x

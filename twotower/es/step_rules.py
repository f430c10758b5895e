"""From a gradient to a step; what a rule remembers is a row of numbers a parameter."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from twotower.config import StrategyConfig

EPSILON = 1e-8


class StepRule(NamedTuple):
    """How many rows a rule remembers, and the step it takes."""

    rows: int
    step: Callable[[StrategyConfig, float, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
    """(config, η, gradient (n,), memory (rows, n)) to the step (n,) and the new memory; the n parameters that move."""


def sgd(
    config: StrategyConfig, step_size: float, gradient: np.ndarray, memory: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """η g, the paper's rule."""
    return step_size * gradient, memory


def momentum(
    config: StrategyConfig, step_size: float, gradient: np.ndarray, memory: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """η v, where v = μ v + (1 - μ) g: a step as long as sgd's, in a steadier direction."""
    velocity = config.momentum * memory + (1 - config.momentum) * gradient
    return step_size * velocity[0], velocity


def adam(
    config: StrategyConfig, step_size: float, gradient: np.ndarray, memory: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Adam (Kingma and Ba 2015); every parameter counts its own updates, for lazy ones have had fewer."""
    first, second = config.momentum, config.second_momentum
    mean = first * memory[0] + (1 - first) * gradient
    square = second * memory[1] + (1 - second) * np.square(gradient)
    updates = memory[2] + 1
    unbiased_mean, unbiased_square = mean / (1 - first**updates), square / (1 - second**updates)
    step = step_size * unbiased_mean / (np.sqrt(unbiased_square) + EPSILON)
    return step, np.stack([mean, square, updates])


def clipup(
    config: StrategyConfig, step_size: float, gradient: np.ndarray, memory: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """ClipUp (Toklu et al. 2020): v = μ v + η g/‖g‖, no longer than the largest speed."""
    length, limit = norm(gradient), config.max_speed or 2 * step_size
    velocity = config.momentum * memory[0] + (step_size / length * gradient if length > 0 else 0.0)
    speed = norm(velocity)
    if speed > limit:
        velocity = velocity * (limit / speed)
    return velocity, velocity[None]


STEP_RULES: dict[str, StepRule] = {
    "sgd": StepRule(0, sgd),
    "momentum": StepRule(1, momentum),
    "adam": StepRule(3, adam),
    "clipup": StepRule(1, clipup),
}


def norm(values: np.ndarray) -> float:
    """‖values‖, summed in an order that does not depend on threads."""
    # np.linalg.norm calls BLAS, whose rounding depends on its threads.
    return math.sqrt(float(np.square(values).sum()))

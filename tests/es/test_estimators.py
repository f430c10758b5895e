"""The estimators against the lemmas (and the paper's wrong one), by Monte Carlo with a fixed seed.

The mean squared error must lie within 4.5 standard errors: a fresh seed would fail 7 times in a million.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from twotower.es import STRATEGIES, Antithetic, ForwardDifference, Strategy, StrategyState

DIMS = 6
GRADIENT = np.array([1.0, -2.0, 0.5, 0.0, 3.0, -1.0])
HALF = np.array([[np.sin(3 * i + j) for j in range(DIMS)] for i in range(DIMS)])
HESSIAN = HALF + HALF.T + np.eye(DIMS)


def linear(theta: np.ndarray) -> float:
    return float(GRADIENT @ theta)


def quadratic(theta: np.ndarray) -> float:
    return float(GRADIENT @ theta + theta @ HESSIAN @ theta / 2)


def squared_errors(strategy: Strategy, objective: Callable[[np.ndarray], float], draws: int) -> np.ndarray:
    """‖estimate - ∇F(0)‖² of independent draws; (draws,)."""
    errors = np.empty(draws)
    for draw in range(draws):
        proposal = strategy.propose(StrategyState(np.zeros(DIMS), draw))
        returns = [objective(proposal.member(index)) for index in range(len(proposal.sign))]
        errors[draw] = np.square(strategy.gradient(proposal, returns) - GRADIENT).sum()
    return errors


def deviation(errors: np.ndarray, expected: float) -> float:
    """How many standard errors the mean is off."""
    return float((errors.mean() - expected) / (errors.std() / np.sqrt(len(errors))))


@pytest.mark.parametrize("name", sorted(STRATEGIES))
def test_linear_error_with_one_direction_a_parameter(name: str) -> None:
    norm = GRADIENT @ GRADIENT
    orthogonal = squared_errors(STRATEGIES[name](DIMS, sigma=0.3), linear, 1500)
    independent = squared_errors(STRATEGIES[name](DIMS, sigma=0.3, directions="independent"), linear, 1500)
    assert abs(deviation(orthogonal, 2 / DIMS * norm)) < 4.5
    assert abs(deviation(independent, (DIMS + 1) / DIMS * norm)) < 4.5


@pytest.mark.parametrize("name", sorted(STRATEGIES))
@pytest.mark.parametrize("dims", [8, 5])
def test_structured_block_recovers_a_linear_gradient_exactly(name: str, dims: int) -> None:
    strategy = STRATEGIES[name](dims, sigma=0.5, directions="structured", num_directions=8)
    proposal = strategy.propose(strategy.init(np.zeros(dims)))
    returns = [proposal.member(index) @ np.arange(dims) for index in range(len(proposal.sign))]
    np.testing.assert_allclose(strategy.gradient(proposal, returns), np.arange(dims), atol=1e-12)


@pytest.mark.parametrize("directions", [3, DIMS])
def test_antithetic_lemma_on_a_quadratic(directions: int) -> None:
    errors = squared_errors(Antithetic(DIMS, sigma=0.7, num_directions=directions), quadratic, 1500)
    norm = GRADIENT @ GRADIENT
    assert abs(deviation(errors, (DIMS + 2) / directions * norm - norm)) < 4.5


def test_forward_difference_lemma_is_ours_and_not_the_papers() -> None:
    sigma, count = 0.7, DIMS
    errors = squared_errors(ForwardDifference(DIMS, sigma=sigma), quadratic, 3000)
    norm, trace, frobenius = GRADIENT @ GRADIENT, np.trace(HESSIAN), np.square(HESSIAN).sum()
    linear_part = (DIMS + 2) / count * norm - norm
    ours = linear_part + sigma**2 / 4 * (DIMS + 4) * (trace**2 + 2 * frobenius) / count
    squared_diagonal = np.square(np.diagonal(HESSIAN)).sum()
    papers = linear_part + sigma**4 / count * ((DIMS + 4) / 4 * frobenius + (DIMS + 2) * squared_diagonal)
    assert abs(deviation(errors, ours)) < 4.5
    assert abs(deviation(errors, papers)) > 10


@pytest.mark.parametrize("name", sorted(STRATEGIES))
@pytest.mark.parametrize("choices", [{"num_directions": 15}, {"num_directions": 15, "directions": "structured"}])
def test_more_directions_than_parameters_lower_the_error(name: str, choices: dict[str, Any]) -> None:
    few = squared_errors(STRATEGIES[name](DIMS, sigma=0.3, **{**choices, "num_directions": 5}), linear, 400)
    many = squared_errors(STRATEGIES[name](DIMS, sigma=0.3, **choices), linear, 400)
    assert many.mean() < few.mean() / 2

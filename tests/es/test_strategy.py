"""The shared part: states, lazy iterations, ask/tell and refusals."""

from typing import Any

import numpy as np
import pytest
import scipy.stats

from twotower.config import StrategyConfig
from twotower.errors import UserError
from twotower.es import STRATEGIES, Antithetic, ForwardDifference, StrategyState, initial_theta


def test_initial_theta_is_standard_normal_and_the_seeds() -> None:
    theta = initial_theta(5000, seed=3)
    assert scipy.stats.kstest(theta, "norm").pvalue > 1e-4
    assert np.array_equal(theta, initial_theta(5000, seed=3))
    assert not np.array_equal(theta, initial_theta(5000, seed=4))
    strategy = Antithetic(5000, seed=3, directions="independent", num_directions=1)
    assert np.array_equal(strategy.theta, theta)
    direction = strategy.propose(strategy.init(theta)).directions.rows(0, 1)[0]
    assert abs(np.corrcoef(direction, theta)[0, 1]) < 5 / np.sqrt(5000)


def test_members_of_the_antithetic_estimator_come_in_pairs() -> None:
    strategy = Antithetic(4, sigma=0.5, num_directions=3)
    proposal = strategy.propose(strategy.init(np.arange(4)))
    steps = np.stack([proposal.member(index) - np.arange(4) for index in range(6)])
    np.testing.assert_allclose(steps[0::2], 0.5 * proposal.directions.rows(0, 3))
    np.testing.assert_allclose(steps[1::2], -0.5 * proposal.directions.rows(0, 3))


def test_first_member_of_forward_difference_is_theta_itself() -> None:
    strategy = ForwardDifference(4, sigma=0.5, num_directions=3)
    proposal = strategy.propose(strategy.init(np.arange(4)))
    steps = np.stack([proposal.member(index) - np.arange(4) for index in range(4)])
    assert not steps[0].any() and list(proposal.direction_of) == [-1, 0, 1, 2]
    np.testing.assert_allclose(steps[1:], 0.5 * proposal.directions.rows(0, 3))


def test_update_is_the_papers_step_with_decayed_sizes() -> None:
    choices = {"sigma": 2.0, "sigma_decay": 0.5, "step_size": 0.1, "step_decay": 0.9}
    strategy = Antithetic(3, StrategyConfig(**choices), seed=1)
    state = StrategyState(np.ones(3), 2)
    proposal = strategy.propose(state)
    assert proposal.sigma == 0.5
    returns = np.arange(6.0) ** 2
    weights = (returns[0::2] - returns[1::2]) / (2 * 0.5 * 3)
    gradient = weights @ proposal.directions.rows(0, 3)
    after, diagnostics = strategy.update(state, proposal, returns)
    np.testing.assert_allclose(after.theta, 1 + 0.081 * gradient)
    assert after.iteration == 3
    np.testing.assert_allclose(
        diagnostics, (np.linalg.norm(gradient), 0.081 * np.linalg.norm(gradient), 0.5, 0.081), rtol=1e-12
    )


@pytest.mark.parametrize("name", sorted(STRATEGIES))
def test_lazy_iterations_leave_the_action_tower_to_the_bit(name: str) -> None:
    strategy = STRATEGIES[name](10, state_params=4, lazy=3, seed=5)
    state = strategy.init(np.linspace(-1, 1, 10))
    for iteration in range(7):
        proposal = strategy.propose(state)
        lazy = iteration % 3 != 0
        assert (proposal.active, proposal.directions.count) == ((4, 4) if lazy else (10, 10))
        members = np.stack([proposal.member(index) for index in range(len(proposal.sign))])
        after, _ = strategy.update(state, proposal, np.square(members).sum(axis=1))
        assert np.array_equal(members[:, 4:], np.broadcast_to(state.theta[4:], (len(members), 6))) == lazy
        assert np.array_equal(after.theta[4:], state.theta[4:]) == lazy
        assert not np.array_equal(after.theta[:4], state.theta[:4])
        rows = proposal.directions.rows(0, proposal.directions.count)
        gram = rows @ rows.T
        assert np.abs(gram - np.diag(np.diagonal(gram))).max() < 1e-9  # orthogonal in the space they live in
        state = after


def test_policies_without_an_action_tower_are_never_lazy() -> None:
    strategy = Antithetic(5, lazy=4, lazy_decay=0.5)
    assert [strategy.propose(StrategyState(np.zeros(5), t)).active for t in range(6)] == [5] * 6


@pytest.mark.parametrize("name", sorted(STRATEGIES))
@pytest.mark.parametrize("directions", ["orthogonal", "structured", "independent"])
def test_ask_and_tell_climb_a_sphere(name: str, directions: Any) -> None:
    peak = np.array([1.0, -2.0, 0.5, 3.0, -1.0])
    strategy = STRATEGIES[name](5, sigma=0.01, step_size=0.2, directions=directions, theta=np.zeros(5))
    for _ in range(60):
        strategy.tell(-np.square(strategy.ask() - peak).sum(axis=1))
    assert np.linalg.norm(strategy.theta - peak) < 0.3
    rough = STRATEGIES[name](5, sigma=0.01, step_size=0.2, directions=directions, theta=np.zeros(5))
    rough.tell(np.square(rough.ask() - peak).sum(axis=1))
    assert np.linalg.norm(rough.theta - peak) > np.linalg.norm(peak)  # it goes up, not down


def test_ask_and_tell_take_the_same_path_as_the_functions() -> None:
    asked = Antithetic(5, sigma=0.3, seed=9)
    state = asked.init(initial_theta(5, 9))
    for _ in range(4):
        thetas = asked.ask()
        assert np.array_equal(thetas, asked.ask())
        asked.tell(np.sin(thetas).sum(axis=1))
        proposal = asked.propose(state)
        returns = [np.sin(proposal.member(index)).sum() for index in range(10)]
        state, _ = asked.update(state, proposal, returns)
    assert np.array_equal(asked.theta, state.theta)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_returns_that_are_not_finite_are_refused_and_may_be_told_again(bad: float) -> None:
    strategy = Antithetic(3)
    before, returns = strategy.theta, np.arange(len(strategy.ask()), dtype=float)
    returns[4] = bad
    with pytest.raises(UserError, match=f"Member 4 of iteration 0 returned {bad}, so θ was left"):
        strategy.tell(returns)
    assert np.array_equal(strategy.theta, before)
    returns[4] = 1.0
    strategy.tell(returns)
    assert not np.array_equal(strategy.theta, before)


@pytest.mark.parametrize("returns", [[1.0] * 5, [1.0] * 7, 1.0, [[1.0]] * 6])
def test_wrong_numbers_of_returns_are_refused(returns: Any) -> None:
    strategy = Antithetic(3)
    before = strategy.theta
    strategy.ask()
    with pytest.raises(UserError, match="6 returns are needed"):
        strategy.tell(returns)
    assert np.array_equal(strategy.theta, before)


def test_a_step_that_overflows_is_refused() -> None:
    strategy = Antithetic(3)
    before = strategy.theta
    strategy.ask()
    with pytest.raises(UserError, match="step of iteration 0 overflows"):
        strategy.tell([1e308, -1e308] * 3)
    assert np.array_equal(strategy.theta, before)


def test_returns_are_told_once() -> None:
    strategy = Antithetic(3)
    with pytest.raises(UserError, match="call ask first"):
        strategy.tell([0.0] * 6)
    strategy.ask()
    strategy.tell([0.0] * 6)
    with pytest.raises(UserError, match="call ask first"):
        strategy.tell([0.0] * 6)


def test_callers_cannot_reach_into_the_state() -> None:
    mine = np.zeros(3)
    strategy = Antithetic(3, theta=mine)
    mine[:] = 7
    strategy.theta[:] = 7
    strategy.ask()[:] = 7
    strategy.propose(strategy.init(np.zeros(3))).member(0)[:] = 7
    assert np.array_equal(strategy.theta, np.zeros(3))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_params": 0}, "state_params must be between 1 and num_params = 0"),
        ({"state_params": 4}, "state_params must be between 1 and num_params = 3, not 4"),
        ({"state_params": 0}, "not 0"),
        ({"sigma": -1.0}, "sigma must be a positive number, not -1.0"),
        ({"sigma": "much"}, "strategy.sigma must be float, not 'much'"),
        ({"num_directions": 0}, "num-directions must be at least 1"),
        ({"directions": "diagonal"}, "directions must be one of orthogonal, structured, independent"),
        ({"sgima": 1.0}, "takes no 'sgima' .did you mean 'sigma'"),
        ({"discount": 0.9}, "takes no 'discount'"),
        ({"seed": -1}, "seed must be between"),
        ({"theta": np.zeros(4)}, "theta must be an array of 3 finite numbers; its shape is"),
        ({"theta": [0, np.nan, 0]}, "3 finite numbers"),
    ],
)
def test_bad_arguments_get_one_sentence(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        Antithetic(**{"num_params": 3, **arguments})


def test_numpy_scalars_are_numbers() -> None:
    strategy = Antithetic(3, sigma=np.float64(0.5), num_directions=np.int64(2))
    assert (strategy.config.sigma, len(strategy.ask())) == (0.5, 4)

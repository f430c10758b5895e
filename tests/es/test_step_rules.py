"""Step rules against their equations, and torch's Adam against ours."""

from typing import Any

import numpy as np
import pytest

from twotower.config import StrategyConfig
from twotower.es import STEP_RULES, Antithetic

GRADIENTS = np.random.default_rng(1).normal(size=(40, 5)) * np.array([1e-6, 1e-2, 1.0, 3.0, 1e4])


def steps(name: Any, gradients: np.ndarray = GRADIENTS, step_size: float = 0.1, **choices: Any) -> np.ndarray:
    """The steps that a rule takes for gradients, one after the other."""
    rule, config = STEP_RULES[name], StrategyConfig(step_rule=name, **choices)
    memory, taken = np.zeros((rule.rows, gradients.shape[1])), []
    for gradient in gradients:
        step, memory = rule.step(config, step_size, gradient, memory)
        assert memory.shape == (rule.rows, gradients.shape[1])
        taken.append(step)
    return np.array(taken)


def test_sgd_is_the_papers_rule() -> None:
    assert np.array_equal(steps("sgd"), 0.1 * GRADIENTS)


def test_momentum_averages_the_gradients_so_far() -> None:
    weights = 0.2 * 0.8 ** np.arange(40)
    np.testing.assert_allclose(steps("momentum", momentum=0.8)[-1], 0.1 * (weights[::-1] @ GRADIENTS))
    assert np.array_equal(steps("momentum", momentum=0.0), steps("sgd"))


def test_adam_is_torchs() -> None:
    torch = pytest.importorskip("torch")
    theta = torch.zeros(5, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([theta], lr=0.1, betas=(0.8, 0.99), maximize=True)
    for gradient in GRADIENTS:
        theta.grad = torch.tensor(gradient)
        optimizer.step()
    np.testing.assert_allclose(
        steps("adam", momentum=0.8, second_momentum=0.99).sum(axis=0), theta.detach().numpy(), rtol=1e-9
    )


def test_clipup_steps_by_direction_alone_and_keeps_to_its_speed() -> None:
    taken = steps("clipup")
    np.testing.assert_allclose(steps("clipup", 1e6 * GRADIENTS), taken)
    np.testing.assert_allclose(np.linalg.norm(taken[0]), 0.1)
    assert np.linalg.norm(taken, axis=1).max() <= 0.2 * (1 + 1e-12)
    same_way = np.tile([3.0, 4.0], (50, 1))
    np.testing.assert_allclose(steps("clipup", same_way)[-1], [0.12, 0.16])
    np.testing.assert_allclose(steps("clipup", same_way, max_speed=0.5)[-1], [0.3, 0.4])
    assert not steps("clipup", np.zeros((3, 2))).any()


@pytest.mark.parametrize("name", sorted(STEP_RULES))
def test_every_rule_climbs(name: Any) -> None:
    peak = np.array([1.0, -2.0, 0.5, 3.0, -1.0])
    strategy = Antithetic(5, sigma=0.01, step_size=0.1, step_rule=name, theta=np.zeros(5))
    for _ in range(150):
        strategy.tell(-np.square(strategy.ask() - peak).sum(axis=1))
    assert np.linalg.norm(strategy.theta - peak) < 0.3


@pytest.mark.parametrize("name", sorted(STEP_RULES))
def test_a_state_that_was_put_aside_goes_on_to_the_same_bits(name: Any) -> None:
    strategy = Antithetic(6, step_rule=name, state_params=4, lazy=2, num_directions=3)
    state = strategy.init(np.ones(6))
    for iteration in range(5):
        proposal = strategy.propose(state)
        returns = np.random.default_rng(iteration).normal(size=len(proposal.sign))
        after, _ = strategy.update(state, proposal, returns)
        again, _ = strategy.update(state._replace(memory=state.memory.copy()), proposal, returns)
        assert np.array_equal(after.theta, again.theta) and np.array_equal(after.memory, again.memory)
        lazy = iteration % 2 == 1
        assert np.array_equal(after.memory[:, 4:], state.memory[:, 4:]) == (lazy or name == "sgd")
        state = after
    if name == "adam":  # lazy parameters correct the bias of their own updates
        assert state.memory[2].tolist() == [5, 5, 5, 5, 3, 3]


def test_weight_decay_shrinks_what_moves() -> None:
    for decay, kept in ((0.0, 1.0), (0.5, 0.95)):
        strategy = Antithetic(4, step_size=0.1, weight_decay=decay, theta=np.full(4, 2.0), state_params=2, lazy=2)
        strategy.ask()
        strategy.tell(np.zeros(8))
        np.testing.assert_allclose(strategy.theta, 2.0 * kept)
        strategy.tell(np.zeros(len(strategy.ask())))
        np.testing.assert_allclose(strategy.theta, [2 * kept**2, 2 * kept**2, 2 * kept, 2 * kept])


def test_initial_scale() -> None:
    assert not Antithetic(4, initial_scale=0.0).theta.any()
    np.testing.assert_allclose(Antithetic(4, initial_scale=0.5, seed=3).theta, 0.5 * Antithetic(4, seed=3).theta)


def test_the_state_towers_initial_scale_leaves_the_action_tower_as_it_was() -> None:
    drawn = Antithetic(5, seed=3).theta
    scaled = Antithetic(5, seed=3, state_params=2, initial_state_scale=0.0).theta
    np.testing.assert_array_equal(scaled, [0, 0, *drawn[2:]])
    both = Antithetic(5, seed=3, state_params=2, initial_scale=0.5, initial_state_scale=0.5).theta
    np.testing.assert_allclose(both, [*drawn[:2] / 4, *drawn[2:] / 2])
    np.testing.assert_array_equal(Antithetic(5, seed=3, initial_state_scale=0.0).theta, drawn)

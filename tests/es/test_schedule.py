import math

import pytest

from twotower.config import StrategyConfig
from twotower.errors import UserError
from twotower.es import Antithetic
from twotower.es.schedule import direction_count, moves_action_tower, sigma_at, step_size_at


def moving(iterations: int, **choices: float) -> list[int]:
    config = StrategyConfig(**choices)
    return [t for t in range(iterations) if moves_action_tower(config, 0, t)]


def test_every_kth_iteration_moves_the_action_tower() -> None:
    assert moving(4) == [0, 1, 2, 3]
    assert moving(12, lazy=5) == [0, 5, 10]


def test_chance_decays_exponentially() -> None:
    config = StrategyConfig(lazy_decay=0.7)
    for t in (0, 1, 3):
        chance = math.exp(-0.7 * t)
        hits = sum(moves_action_tower(config, seed, t) for seed in range(2000))
        # 4.5 standard errors: a fresh set of seeds would fail 7 times in a million.
        assert abs(hits - 2000 * chance) <= 4.5 * math.sqrt(2000 * chance * (1 - chance))


def test_both_schedules_must_allow() -> None:
    both = moving(60, lazy=3, lazy_decay=0.03)
    assert both == sorted(set(moving(60, lazy=3)) & set(moving(60, lazy_decay=0.03)))
    assert 0 < len(both) < 20


@pytest.mark.parametrize(
    ("directions", "asked", "active", "expected"),
    [
        ("orthogonal", None, 10, 10),
        ("orthogonal", None, 4, 4),
        ("orthogonal", 7, 4, 4),
        ("orthogonal", 3, 4, 3),
        ("orthogonal", 25, 10, 25),
        ("structured", 7, 4, 4),
        ("independent", None, 4, 4),
        ("independent", 7, 4, 7),
    ],
)
def test_number_of_directions(directions: str, asked: int | None, active: int, expected: int) -> None:
    config = StrategyConfig(directions=directions, num_directions=asked)
    assert direction_count(config, active, num_params=10) == expected


def test_sigma_and_step_size_decay() -> None:
    config = StrategyConfig(sigma=2.0, sigma_decay=0.5, step_size=0.1, step_decay=0.9)
    assert sigma_at(config, 3, 10**6) == 0.25
    assert step_size_at(config, 2, 10**6) == pytest.approx(0.081)


def test_with_decay_steps_one_decay_is_spread_over_environment_steps() -> None:
    config = StrategyConfig(sigma=2.0, sigma_decay=0.25, step_size=0.1, step_decay=0.9, decay_steps=1000)
    assert [sigma_at(config, 99, steps) for steps in (0, 500, 1000, 9000)] == [2.0, 1.0, 0.5, 0.5]
    assert step_size_at(config, 99, 1000) == pytest.approx(0.09)
    strategy = Antithetic(4, config)
    state = strategy.init(strategy.theta)._replace(steps=500)
    proposal = strategy.propose(state)
    assert proposal.sigma == 1.0
    assert strategy.update(state, proposal, [0.0] * 8)[0].steps == 500


@pytest.mark.parametrize("decay", [0.5, 2.0])
def test_decay_out_of_floating_point_is_refused(decay: float) -> None:
    with pytest.raises(UserError, match=r"sigma_decay = .* after 5000 decays"):
        sigma_at(StrategyConfig(sigma_decay=decay), 5000, 0)

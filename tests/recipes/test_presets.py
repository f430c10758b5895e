"""Presets: every task has them, options win over them, and `ars` is Augmented Random Search."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from twotower import recipes
from twotower.api import merged
from twotower.cli import train_config
from twotower.config import PolicyKind, PresetName, TrainConfig
from twotower.envs import BoxActions
from twotower.errors import UserError
from twotower.es import Antithetic
from twotower.policies import make_policy
from twotower.recipes import budgeted, task_config

TASKS = [*recipes.names(), *recipes.ablations(), "Ant-v5", "dmc:cartpole-swingup"]
BOX = BoxActions((-1.0,) * 3, (1.0,) * 3)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("preset", ["fast", "ars"])
def test_every_task_has_every_preset_for_every_policy(task: str, preset: PresetName) -> None:
    own = task_config(task, preset=preset)
    assert own.policy.kind == {"fast": "itt", "ars": "explicit"}[preset]
    recipe = recipes.find(task)
    assert (own.env_id or own.task) == (recipe.env_id if recipe else task)
    kinds: tuple[PolicyKind, ...] = ("itt", "iot", "explicit")
    for kind in kinds:
        config = task_config(task, kind, preset)
        assert config == dataclasses.replace(own, policy=dataclasses.replace(own.policy, kind=kind))
        assert make_policy(config.policy, config.candidates, 8, BOX).num_params > 0
        assert (config.preset, config.iterations, config.steps) == (preset, None, None)
        assert (budgeted(config).steps or 0) >= 100_000
    assert own.policy.normalise_observations and own.strategy.scale_returns


def test_the_papers_preset_is_the_recipe() -> None:
    assert task_config("hopper", preset="paper") == task_config("hopper") == recipes.get("hopper").config()
    assert budgeted(task_config("hopper")) == task_config("hopper")
    assert train_config(["hopper"]) == recipes.get("hopper").config()


def test_a_version_of_a_task_takes_its_familys_preset() -> None:
    for preset in ("fast", "ars"):
        hopper = task_config("hopper", preset=preset).strategy
        assert task_config("Hopper-v5", preset=preset).strategy == hopper != task_config("Ant-v5").strategy
        assert hopper.survival_bonus == 1.0


def test_fast_gives_every_member_a_slot() -> None:
    for task in TASKS:
        config = task_config(task, preset="fast")
        assert config.env.slots == 2 * (config.strategy.num_directions or 0) + 1


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        (["hopper", "--preset", "fast"], {}),
        (["hopper", "--preset", "fast", "--sigma", "0.5", "--seed", "4"], {"strategy": {"sigma": 0.5}, "seed": 4}),
        (["hopper", "--preset", "fast", "--steps", "5"], {"steps": 5}),
        (["Ant-v5", "--preset", "fast", "--kind", "iot"], {"policy": {"kind": "iot"}}),
        (["Ant-v5", "--preset", "fast", "--iterations", "5"], {"iterations": 5}),
        (["swimmer", "--preset", "ars", "--kind", "itt"], {"policy": {"kind": "itt"}}),
        (["--seed", "1", "swimmer", "--preset", "ars"], {"seed": 1}),
    ],
)  # fmt: skip
def test_options_win_over_presets_on_the_command_line_as_in_python(
    arguments: list[str], options: dict[str, Any]
) -> None:
    task = next(word for word in arguments if word in ("hopper", "swimmer", "Ant-v5"))
    preset: Any = arguments[arguments.index("--preset") + 1]
    asked = train_config(arguments)
    default = task_config(task, options.get("policy", {}).get("kind"), preset)
    assert asked == budgeted(merged(default, options))
    assert asked.preset == preset and asked != default
    budget = 5_000_000 if (task, preset) == ("hopper", "fast") else 1_000_000
    assert asked.steps == options.get("steps", None if "iterations" in options else budget)


def test_an_unknown_preset_is_refused() -> None:
    wrong: Any = "slow"
    with pytest.raises(UserError, match="There is no preset 'slow': choose paper, fast or ars"):
        task_config("hopper", preset=wrong)


@pytest.mark.parametrize("task", ["HalfCheetah-v4", "Hopper-v4", "Pendulum-v1"])
def test_ars_steps_as_its_paper_says(task: str) -> None:
    alpha = {"HalfCheetah-v4": 0.02, "Hopper-v4": 0.01, "Pendulum-v1": 0.02}[task]
    config: TrainConfig = task_config(task, preset="ars")
    strategy = Antithetic(12, config.strategy, seed=1)
    assert not strategy.theta.any()
    proposal = strategy.propose(strategy.init(strategy.theta))
    returns = np.random.default_rng(0).normal(size=len(proposal.sign)) * 100
    plus, minus, b = returns[0::2], returns[1::2], config.strategy.top_directions or 0
    best = np.argsort(-np.maximum(plus, minus))[:b]
    deviation = np.concatenate([plus[best], minus[best]]).std()
    delta = proposal.directions.rows(0, len(plus))
    strategy.ask()
    strategy.tell(returns)
    np.testing.assert_allclose(strategy.theta, alpha / (b * deviation) * ((plus - minus)[best] @ delta[best]))

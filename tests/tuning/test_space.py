"""What is tuned: values go into configurations and come out again, and configurations into commands."""

import shlex
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twotower.api import merged
from twotower.cli import train_config
from twotower.config import PresetName, to_dict
from twotower.recipes import budgeted, task_config
from twotower.tuning.folder import arguments
from twotower.tuning.space import KNOBS, applied, defaults

pytest.importorskip("optuna")


@pytest.mark.parametrize("preset", ["fast", "ars"])
@pytest.mark.parametrize("task", ["hopper", "Ant-v5"])
def test_the_first_trial_is_the_preset_itself(task: str, preset: PresetName) -> None:
    config = task_config(task, preset=preset)
    over = tuple(name for name in KNOBS if name != "latent")  # which explicit policies lack
    again = to_dict(applied(config, defaults(config, over)))
    assert again.pop("strategy") == pytest.approx(to_dict(config)["strategy"])
    assert again == {name: part for name, part in to_dict(config).items() if name != "strategy"}


def values(name: str) -> st.SearchStrategy[Any]:
    knob = KNOBS[name]
    if knob.kind == "choice":
        return st.sampled_from(knob.values)
    return st.integers(*knob.values) if knob.kind == "whole" else st.floats(*knob.values)


@given(st.fixed_dictionaries({name: values(name) for name in KNOBS}))
def test_values_are_read_as_they_were_written(chosen: dict[str, Any]) -> None:
    config = to_dict(applied(task_config("hopper", preset="fast"), chosen))
    for name, value in chosen.items():
        found = KNOBS[name].read(config)
        if name == "selection":
            assert abs(found - value) <= 1 / chosen["directions"]  # whole directions
        else:
            assert found == (pytest.approx(value) if isinstance(value, float) else value)
    assert config["env"]["slots"] == 2 * chosen["directions"] + 1


def test_sigma_alone_keeps_the_step_in_proportion() -> None:
    config = task_config("halfcheetah", preset="fast")
    doubled = applied(config, {"sigma": 2 * config.strategy.sigma}).strategy
    assert doubled.step_size == pytest.approx(4 * config.strategy.step_size)


@given(st.fixed_dictionaries({}, optional={name: values(name) for name in KNOBS}), st.sampled_from(["fast", "ars"]))
def test_the_command_trains_what_was_found(chosen: dict[str, Any], preset: PresetName) -> None:
    config = budgeted(merged(applied(task_config("hopper", preset=preset), chosen), {"steps": 12345}))
    words = ["twotower", "train", *arguments(config)]
    assert train_config(shlex.split(shlex.join(words))[2:]) == config


@pytest.mark.parametrize(
    "options",
    [
        {"policy": {"kind": "explicit", "hidden": ()}},
        {"policy": {"state_hidden": (8, 4)}, "env": {"kwargs": '{"a b": 1}', "wrappers": ("a:B", "c:D")}},
        {"seed": 3, "strategy": {"num_directions": None, "scale_returns": False}},
    ],
)
def test_any_configuration_has_a_command(options: dict[str, Any]) -> None:
    kind = options.get("policy", {}).get("kind")
    config = budgeted(merged(task_config("Ant-v5", kind, "fast"), options))
    assert train_config(shlex.split(shlex.join(arguments(config)))) == config

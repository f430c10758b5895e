"""Choices: what no run could use is refused in words, and plain data comes back as it was."""

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twotower.config import EnvConfig, StrategyConfig, TrainConfig, env_kwargs, from_dict, nearest, to_dict
from twotower.errors import UserError

NAN, INF = float("nan"), float("inf")
WHOLE = (
    "iterations steps workers evaluation_episodes candidates.count strategy.num_directions strategy.lazy env.slots "
    "strategy.top_directions strategy.episodes_per_member strategy.decay_steps candidates.final_count "
    "env.max_episode_steps policy.latent"
).split()
POSITIVE = (
    "strategy.sigma strategy.sigma_decay strategy.step_size strategy.step_decay policy.temperature "
    "policy.refinement_radius policy.refinement_shrink strategy.max_speed candidates.count_growth"
).split()
BAD: list[tuple[str, Any]] = [
    *((name, value) for name in WHOLE for value in (0, -3)),
    *((name, (4, 0)) for name in ("policy.state_hidden", "policy.action_hidden", "policy.hidden")),
    *((name, value) for name in POSITIVE for value in (0.0, -1.0, NAN, INF)),
    *(("seed", value) for value in (-1, 2**63)),
    *(("strategy.discount", value) for value in (0.0, -0.5, 1.01, NAN)),
    *(
        (f"strategy.{name}", value)
        for name in ("lazy_decay", "weight_decay", "initial_scale", "initial_state_scale")
        for value in (-0.1, NAN, INF)
    ),
    *((f"strategy.{name}", value) for name in ("momentum", "second_momentum") for value in (-0.1, 1.0, NAN)),
    *(("strategy.survival_bonus", value) for value in (NAN, INF)),
    ("policy.refinements", -1),
    *(("checkpoint_seconds", value) for value in (-1.0, NAN)),
    ("candidates.count", 2**24 + 1),
    ("candidates.final_count", 2**24 + 1),
    *(("env.kwargs", value) for value in ("{", "[1]", "3", "", "[" * 10**5)),
]


def with_value(name: str, value: Any) -> dict[str, Any]:
    data = to_dict(TrainConfig("swimmer"))
    *groups, field = name.split(".")
    (data[groups[0]] if groups else data)[field] = value
    return data


@pytest.mark.parametrize(("name", "value"), BAD, ids=[f"{name}={str(value)[:9]}" for name, value in BAD])
def test_a_bad_value_is_refused_with_its_flag(name: str, value: Any) -> None:
    with pytest.raises(UserError) as error:
        from_dict(TrainConfig, with_value(name, value))
    assert str(error.value).startswith(f"--{name.replace('_', '-')} ")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, 1) for name in WHOLE),
        ("seed", 0),
        ("seed", 2**63 - 1),
        ("strategy.discount", 1.0),
        ("strategy.lazy_decay", 0.0),
        ("strategy.weight_decay", 0.0),
        ("strategy.initial_scale", 0.0),
        ("strategy.initial_state_scale", 0.0),
        ("strategy.momentum", 0.0),
        ("strategy.survival_bonus", -1.0),
        ("checkpoint_seconds", INF),
        ("candidates.count", 2**24),
        ("env.kwargs", "{}"),
    ],
)
def test_the_last_good_value_is_taken(name: str, value: Any) -> None:
    assert to_dict(from_dict(TrainConfig, with_value(name, value))) == with_value(name, value)


def test_direct_construction_is_checked_too() -> None:
    with pytest.raises(UserError, match="--strategy.sigma must be a positive number, not -1"):
        TrainConfig("swimmer", strategy=StrategyConfig(sigma=-1.0))
    with pytest.raises(UserError, match="--env.slots"):
        dataclasses.replace(TrainConfig("swimmer"), env=EnvConfig(slots=0))


def test_env_kwargs() -> None:
    assert env_kwargs(EnvConfig(kwargs='{"g": 5, "a": [true, null]}')) == {"g": 5, "a": [True, None]}


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (None, "config must be an object, not NoneType."),
        ({}, "config is incomplete"),
        ({"task": "x", "polcy": {}}, "config has an unknown field 'polcy' (did you mean 'policy'?)."),
        ({"task": 3}, "config.task must be str, not 3."),
        ({"task": "x", "seed": True}, "config.seed must be int, not True."),
        ({"task": "x", "iterations": 2.0}, "config.iterations must be int or NoneType, not 2.0."),
        ({"task": "x", "policy": []}, "config.policy must be an object, not list."),
        ({"task": "x", "policy": {"kind": "itp"}}, "config.policy.kind must be one of itt, iot, explicit, not 'itp'."),
        ({"task": "x", "policy": {"hidden": 4}}, "config.policy.hidden must be a list, not 4."),
        ({"task": "x", "policy": {"hidden": ["4"]}}, "config.policy.hidden must be int, not '4'."),
        ({"task": "x", "strategy": {"sigma": 10**400}}, "config.strategy.sigma must be float, not 1000"),
    ],
)
def test_foreign_data_is_refused_in_words(data: Any, sentence: str) -> None:
    with pytest.raises(UserError) as error:
        from_dict(TrainConfig, data)
    assert str(error.value).startswith(sentence)


def test_a_round_trip_through_json_changes_nothing() -> None:
    config = TrainConfig(
        "x", seed=2**60, steps=7, strategy=StrategyConfig(sigma=0.1), env=EnvConfig(wrappers=("a:B", "c:D"))
    )
    again = from_dict(TrainConfig, json.loads(json.dumps(to_dict(config))))
    assert again == config and isinstance(again.env.wrappers, tuple)
    whole = from_dict(StrategyConfig, {"sigma": 2})
    assert type(whole.sigma) is float and whole.sigma == 2


NUMBERS = st.integers() | st.integers(10**300, 10**320) | st.floats()
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
FIELDS = {
    field.name: [inner.name for inner in dataclasses.fields(default)] if dataclasses.is_dataclass(default) else []
    for field in dataclasses.fields(TrainConfig)
    for default in [field.default_factory() if callable(field.default_factory) else None]
}


@st.composite
def nearly_a_config(draw: st.DrawFn) -> Any:
    data: dict[str, Any] = {"task": "x"}
    for _ in range(draw(st.integers(1, 3))):
        name = draw(st.sampled_from(sorted(FIELDS)))
        inner = FIELDS[name] and draw(st.booleans())
        data[name] = {draw(st.sampled_from(FIELDS[name])): draw(JSON)} if inner else draw(JSON)
    return data


@given(JSON | nearly_a_config())
def test_arbitrary_data_gives_a_config_or_a_sentence(data: Any) -> None:
    try:
        config = from_dict(TrainConfig, data)
    except UserError as error:
        assert len(str(error)) > 10
    else:
        assert isinstance(config, TrainConfig) and config.task


def test_a_suggestion_is_spelled_as_the_name_is() -> None:
    assert nearest("cartpole-v1", ["CartPole-v1", "Acrobot-v1"]) == " (did you mean 'CartPole-v1'?)"
    assert nearest("zzz", ["CartPole-v1"]) == ""

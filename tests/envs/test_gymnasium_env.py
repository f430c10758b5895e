"""The general path: spaces, arguments, wrappers and environments that fail."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from twotower.config import EnvConfig
from twotower.envs import (
    BoxActions,
    DiscreteActions,
    EnvBatch,
    EnvironmentFailure,
    EnvSpec,
    SlotSeeds,
    Transition,
    inspect,
    make_batch,
)
from twotower.errors import UserError

ECHO = "examples:Echo-v0"


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))


def make(slots: int = 1, wrappers: tuple[str, ...] = (), **kwargs: Any) -> tuple[EnvSpec, EnvBatch]:
    env = EnvConfig(kwargs=json.dumps(kwargs), wrappers=wrappers)
    spec = inspect(env, ECHO)
    return spec, make_batch(env, spec, SlotSeeds(0, tuple(range(slots))))


def advance(batch: EnvBatch, actions: Any, start: bool, slots: int = 1) -> Transition:
    numbers = np.arange(slots, dtype=np.int32)
    return batch.advance(numbers, np.array(actions), np.full(slots, start), numbers.astype(np.int64))


def test_an_observation_of_any_shape_is_flattened() -> None:
    spec, batch = make()
    assert (spec.backend, spec.observation_size, spec.max_episode_steps) == ("gymnasium", 6, 4)
    assert advance(batch, [0], True).observations.tolist() == [[0, 1, 2, 3, 4, 5]]


def test_a_dict_is_flattened_in_alphabetical_order_scalars_included() -> None:
    spec, batch = make(observation="dict")
    assert spec.observation_size == 3
    assert advance(batch, [0], True).observations.tolist() == [[7, 8, 0.5]]


def test_discrete_actions_begin_where_the_space_does() -> None:
    spec, batch = make(slots=3)
    assert spec.actions == DiscreteActions(3, first=-1)
    advance(batch, [0, 0, 0], True, 3)
    assert advance(batch, [0, 1, 2], False, 3).rewards.tolist() == [-1, 0, 1]


def test_a_box_keeps_its_own_bounds() -> None:
    spec, batch = make(action="box")
    assert spec.actions == BoxActions((-2.0, 1.0), (4.0, 1.5))
    advance(batch, [[4.0, 1.5]], True)
    assert advance(batch, [[4.0, 1.25]], False).rewards.tolist() == [5.25]


def test_wrappers_apply_in_order_and_episodes_are_cut() -> None:
    spec, batch = make(wrappers=("examples:Doubled", "examples:Increased"), action="box")
    advance(batch, [[1.0, 1.0]], True)
    answers = [advance(batch, [[1.0, 1.0]], False) for _ in range(4)]
    assert [answer.rewards[0] for answer in answers] == [5, 5, 5, 5]
    assert [bool(answer.dones[0]) for answer in answers] == [False, False, False, True]
    env = EnvConfig(max_episode_steps=2)
    assert inspect(env, ECHO).max_episode_steps == 2


def test_the_described_wrapper_bounds_unbounded_actions() -> None:
    spec, batch = make(wrappers=("examples:Bounded",), action="unbounded")
    assert spec.actions == BoxActions((-1.0, -1.0), (1.0, 1.0))
    advance(batch, [[0.5, 0.5]], True)
    assert advance(batch, [[0.5, 0.5]], False).rewards.tolist() == [1]


@pytest.mark.parametrize(("fail", "sentence"), [("reset", "ValueError: no start"), ("step", "RuntimeError: the motor")])
def test_a_raising_environment_is_named(fail: str, sentence: str) -> None:
    _, batch = make(slots=3)
    advance(batch, [0, 0, 0], True, 3)
    batch.environments[1].unwrapped.fail = fail  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(EnvironmentFailure, match=sentence) as failure:
        advance(batch, [0, 0, 0], fail == "reset", 3)
    assert failure.value.slot == 1
    assert failure.value.__cause__ is not None


@pytest.mark.parametrize(
    ("kwargs", "sentence"),
    [
        ({"observation": "tuple"}, "observes a Tuple space, but policies read a Box of numbers or a Dict of them"),
        ({"observation": "text"}, "observes a Text space"),
        ({"observation": "graph"}, "observes a Graph space"),
        ({"observation": "nested"}, "observes a Dict space"),
        ({"observation": "image"}, r"observes a picture, Box\(8, 8, 3\)"),
        (
            {"action": "unbounded"},
            r"unbounded actions \(low \[-inf, -inf\].*--env.wrappers module:Class.*RescaleAction",
        ),
        ({"action": "above"}, "unbounded actions"),
        ({"action": "below"}, "unbounded actions"),
        ({"action": "matrix"}, r"takes Box\(2, 2\) actions, but policies choose from a one-dimensional Box"),
        ({"action": "multi"}, "takes MultiDiscrete actions"),
        ({"colour": 1}, r"cannot be built \(with --env.kwargs .*unexpected keyword argument 'colour'"),
    ],
)
def test_what_no_policy_can_read_or_do_is_refused(kwargs: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        make(**kwargs)


@pytest.mark.parametrize("name", ["nowhere:Wrapper", "examples:Nothing", "examples", ":Wrapper"])
def test_a_wrapper_that_cannot_be_imported_is_refused(name: str) -> None:
    with pytest.raises(UserError, match=f"--env.wrappers takes module:Class, but '{name}' cannot be imported"):
        make(wrappers=(name,))


def test_a_wrapper_that_does_not_fit_is_refused() -> None:
    with pytest.raises(UserError, match="The wrapper gymnasium.wrappers:TimeLimit cannot wrap the environment"):
        make(wrappers=("gymnasium.wrappers:TimeLimit",))


def test_bullet_ids_register_themselves_or_name_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pybullet_envs_gymnasium", None)
    with pytest.raises(UserError, match=r'pip install "twotower\[bullet\]"'):
        inspect(EnvConfig(), "InvertedPendulumBulletEnv-v0")


def test_bullet_runs_where_it_is_installed() -> None:
    pytest.importorskip("pybullet_envs_gymnasium")
    spec = inspect(EnvConfig(), "InvertedPendulumBulletEnv-v0")
    assert (spec.observation_size, spec.actions) == (5, BoxActions((-1.0,), (1.0,)))

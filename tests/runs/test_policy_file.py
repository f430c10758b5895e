"""A policy file gives back all of itself, or one sentence."""

import copy
import dataclasses
import json
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from twotower import recipes
from twotower.config import EnvConfig
from twotower.envs.base import BoxActions, DiscreteActions, EnvSpec
from twotower.errors import UserError
from twotower.es import Normaliser
from twotower.files import sealed_file
from twotower.runs import Evaluation, PolicyFile

BOX = EnvSpec("Swimmer-v4", "envpool", 8, BoxActions((-1.0, -2.5), (1.0, 0.1)), 1000)
DISCRETE = EnvSpec("CartPole-v1", "gymnasium", 4, DiscreteActions(2), None)
CONFIG = dataclasses.replace(recipes.get("swimmer").config(seed=5), env=EnvConfig(kwargs='{"a": "π"}'))
POLICY = PolicyFile(np.array([0.1, -1 / 3]), CONFIG, BOX, 7, 123, Evaluation((1 / 3, 2.0, 1e-300), 9))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "policy.safetensors"


@pytest.mark.parametrize("spec", [BOX, DISCRETE])
@pytest.mark.parametrize("evaluation", [POLICY.evaluation, None])
def test_round_trip(path: Path, spec: EnvSpec, evaluation: Evaluation | None) -> None:
    policy = dataclasses.replace(POLICY, spec=spec, evaluation=evaluation)
    policy.save(path)
    loaded = PolicyFile.load(path)
    assert loaded.theta.tobytes() == policy.theta.tobytes()
    without = {"theta": np.zeros(1)}
    assert repr(dataclasses.replace(loaded, **without)) == repr(dataclasses.replace(policy, **without))
    assert loaded.config == CONFIG and loaded.spec == spec and loaded.evaluation == evaluation


def test_versions_name_what_the_bits_depend_on() -> None:
    assert {"python", "machine", "cpu", "numpy", "numba", "gymnasium"} <= POLICY.versions.keys()
    assert POLICY.versions["numpy"] == np.__version__


def test_evaluation_statistics() -> None:
    evaluation = Evaluation((1.0, 3.0), 0)
    assert (evaluation.mean, evaluation.std) == (2.0, 1.0)


def test_parameters_must_be_a_finite_float64_vector(path: Path) -> None:
    POLICY.save(path)
    text = sealed_file.load(path, "policy").text
    for tensors, words in (
        ({"theta": np.array([1.0, np.nan])}, "not finite"),
        ({"theta": np.array([1.0, -np.inf])}, "not finite"),
        ({"theta": np.array([1.0, 1e39])}, "not finite"),
        ({"theta": np.ones((2, 1))}, "float64 vector"),
        ({"theta": np.ones(2, dtype=np.int64)}, "float64 vector"),
        ({"theta": np.empty(0)}, "float64 vector"),
        ({}, "float64 vector"),
        ({"theta": np.ones(2), "more": np.ones(2)}, "must be theta and, only where"),
    ):
        sealed_file.save(path, "policy", tensors, text)
        with pytest.raises(UserError, match=words):
            PolicyFile.load(path)
    with pytest.raises(UserError, match="not written"):
        dataclasses.replace(POLICY, theta=np.array([np.nan])).save(path)


NORMALISER = Normaliser(np.arange(8.0), np.full(8, 0.5))


def normalising() -> PolicyFile:
    policy = dataclasses.replace(CONFIG.policy, normalise_observations=True)
    return dataclasses.replace(
        POLICY, config=dataclasses.replace(CONFIG, policy=policy), normaliser=Normaliser(*NORMALISER)
    )


def test_a_normaliser_comes_back(path: Path) -> None:
    normalising().save(path)
    loaded = PolicyFile.load(path).normaliser
    assert loaded is not None and loaded.mean.tobytes() == NORMALISER.mean.tobytes()
    assert loaded.scale.tobytes() == NORMALISER.scale.tobytes()


@pytest.mark.parametrize(
    ("mean", "scale", "words"),
    [
        (np.zeros(7), np.ones(8), "8 finite numbers"),
        (np.zeros(8), np.full(8, np.nan), "8 finite numbers"),
        (np.zeros(8, np.int64), np.ones(8), "8 finite numbers"),
        (None, np.ones(8), "must be theta and, only where"),
        (None, None, "must be theta and, only where"),
    ],
)
def test_a_normaliser_must_be_whole(path: Path, mean: Any, scale: Any, words: str) -> None:
    normalising().save(path)
    text = sealed_file.load(path, "policy").text
    tensors = {"theta": POLICY.theta, "observation_mean": mean, "observation_scale": scale}
    sealed_file.save(path, "policy", {name: part for name, part in tensors.items() if part is not None}, text)
    with pytest.raises(UserError, match=words):
        PolicyFile.load(path)


def facts(path: Path) -> dict[str, Any]:
    POLICY.save(path)
    return json.loads(sealed_file.load(path, "policy").text)


def refused(path: Path, data: object) -> str:
    """The one sentence with which these facts are refused."""
    sealed_file.save(path, "policy", {"theta": POLICY.theta}, data if isinstance(data, str) else json.dumps(data))
    with pytest.raises(UserError) as caught:
        PolicyFile.load(path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)
    return str(caught.value)


BAD_FACTS = [
    (("config", "policy", "kind"), "ttt", "config.policy.kind must be one of"),
    (("config", "strategy", "sigma"), -1, "--strategy.sigma must be a positive number"),
    (("config", "strategy", "sigma"), 10**400, "wrong"),
    (("config", "unheard_of"), 1, "unknown field 'unheard_of'"),
    (("config",), [], "config must be an object"),
    (("config", "env", "kwargs"), "[" * 100_000, "wrong"),
    (("spec", "actions"), {"low": [-1.0], "high": []}, "finite bounds"),
    (("spec", "actions"), {"low": [1.0], "high": [-1.0]}, "finite bounds"),
    (("spec", "actions"), {"low": [float("nan")], "high": [1.0]}, "finite bounds"),
    (("spec", "actions"), {"low": [], "high": []}, "finite bounds"),
    (("spec", "actions"), {"count": 0}, "sizes"),
    (("spec", "actions"), {"low": [-1.0]}, "incomplete"),
    (("spec", "actions"), None, "wrong"),
    (("spec", "observation_size"), 0, "sizes"),
    (("spec", "observation_size"), "8", "spec.observation_size must be int"),
    (("iteration",), -1, "counts"),
    (("steps",), True, "counts"),
    (("evaluation",), {"returns": [], "seed": 0}, "finite returns"),
    (("evaluation",), {"returns": [float("nan")], "seed": 0}, "finite returns"),
    (("evaluation",), {"returns": "1", "seed": 0}, "evaluation.returns must be a list"),
    (("evaluation",), [1.0], "evaluation must be an object"),
    (("versions",), {"numpy": 2}, "versions"),
    (("versions",), None, "versions"),
]


@pytest.mark.parametrize(("keys", "value", "words"), BAD_FACTS)
def test_wrong_facts_are_refused_in_words(path: Path, keys: tuple[str, ...], value: object, words: str) -> None:
    data = inner = facts(path)
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] = value
    assert words in refused(path, data)


def test_missing_facts_are_refused(path: Path) -> None:
    whole = facts(path)
    for key in whole:
        refused(path, {name: value for name, value in whole.items() if name != key})
    for text in ("", "null", "[]", "{", "1", "[" * 100_000):
        refused(path, text)


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=5), inner), max_leaves=5)


@settings(
    max_examples=200, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.data(), JSON)
def test_any_fact_replaced_by_anything_loads_or_is_refused(path: Path, data: st.DataObject, value: object) -> None:
    whole = inner = copy.deepcopy(FACTS)
    key = data.draw(st.sampled_from(sorted(inner)))
    while isinstance(inner[key], dict) and inner[key] and data.draw(st.booleans()):
        inner = inner[key]
        key = data.draw(st.sampled_from(sorted(inner)))
    inner[key] = value
    sealed_file.save(path, "policy", {"theta": POLICY.theta}, json.dumps(whole))
    try:
        PolicyFile.load(path)
    except UserError as error:
        assert str(path) in str(error)


def test_a_pickle_is_not_run(path: Path, tmp_path: Path) -> None:
    class Attack:
        def __reduce__(self) -> tuple[Any, ...]:
            return Path.touch, (tmp_path / "attacked",)

    path.write_bytes(pickle.dumps(Attack()))
    with pytest.raises(UserError, match=re.escape(str(path))):
        PolicyFile.load(path)
    assert not (tmp_path / "attacked").exists()


FACTS = {
    "config": dataclasses.asdict(CONFIG),
    "spec": dataclasses.asdict(BOX),
    "iteration": 1,
    "steps": 2,
    "evaluation": {"returns": [1.0], "seed": 3},
    "versions": {"python": "3"},
}

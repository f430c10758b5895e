"""A trained policy in one file: safetensors and JSON, no pickle, so loading runs no code."""

import contextlib
import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from twotower.config import TrainConfig, from_dict, to_dict
from twotower.envs.base import BoxActions, DiscreteActions, EnvSpec
from twotower.errors import UserError
from twotower.es import Normaliser
from twotower.files import sealed_file
from twotower.runs.versions import versions
from twotower.towers import is_finite


@dataclass(frozen=True)
class Evaluation:
    """Undiscounted returns of fresh episodes, and the seed that replays them."""

    returns: tuple[float, ...]
    seed: int

    @property
    def mean(self) -> float:
        """Mean return."""
        return float(np.mean(self.returns))

    @property
    def std(self) -> float:
        """Standard deviation of the returns."""
        return float(np.std(self.returns))


@dataclass(frozen=True)
class PolicyFile:
    """All it takes to run a policy elsewhere and reproduce its recorded score."""

    theta: np.ndarray  # (D,) float64
    config: TrainConfig
    spec: EnvSpec
    iteration: int
    steps: int
    evaluation: Evaluation | None = None
    versions: dict[str, str] = field(default_factory=versions)
    normaliser: Normaliser | None = None
    """What training made of observations; None where the network takes them as they are."""
    queries: np.ndarray = field(default_factory=lambda: np.zeros((0, 0), np.float32))
    """(n, features) float32: what the last rollouts asked a search that learns from that."""

    def save(self, path: Path) -> None:
        """Write the file, atomically."""
        if not is_finite(self.theta):
            raise UserError(f"The parameters are not finite numbers, so {path} was not written: train again.")
        tensors, facts = self.parts()
        sealed_file.save(path, "policy", tensors, json.dumps(facts, allow_nan=False))

    def parts(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """The arrays, and the rest as plain data."""
        facts = {
            "config": to_dict(self.config),
            "spec": dataclasses.asdict(self.spec),
            "iteration": self.iteration,
            "steps": self.steps,
            "evaluation": None if self.evaluation is None else dataclasses.asdict(self.evaluation),
            "versions": self.versions,
        }
        tensors = {"theta": self.theta}
        if self.normaliser is not None:
            tensors |= {"observation_mean": self.normaliser.mean, "observation_scale": self.normaliser.scale}
        if len(self.queries):
            tensors |= {"search_queries": self.queries}
        return tensors, facts

    @classmethod
    def load(cls, path: Path) -> "PolicyFile":
        """Read a policy, or say in one sentence why the file is none."""
        tensors, text = sealed_file.load(path, "policy")
        with contextlib.suppress(ValueError, RecursionError):
            return cls.of_parts(tensors, json.loads(text), path)
        raise UserError(f"{path} lacks facts a policy needs, or has them wrong: save the policy again.")

    @classmethod
    def of_parts(cls, tensors: dict[str, np.ndarray], data: Any, path: Path) -> "PolicyFile":
        """The policy that a file holds as arrays and plain data, or one sentence why it is none."""
        theta = tensors.pop("theta", np.empty(0))
        if theta.dtype != np.float64 or theta.ndim != 1 or theta.size == 0:
            raise UserError(f"{path} must hold one float64 vector, theta: save the policy again.")
        if not is_finite(theta):
            raise UserError(f"{path} holds parameters that are not finite numbers: train again.")
        queries = tensors.pop("search_queries", np.zeros((0, 0), np.float32))
        if queries.dtype != np.float32 or queries.ndim != 2 or not np.isfinite(queries).all():
            raise UserError(f"{path} holds queries of its search that are not finite numbers: train again.")
        try:
            facts = _facts(data)
            normaliser = _normaliser(tensors, facts["config"], facts["spec"])
            return cls(theta=theta.copy(), normaliser=normaliser, queries=queries.copy(), **facts)
        except UserError as error:
            raise UserError(f"{path} is not a policy twotower can run: {error}") from error
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
            raise UserError(f"{path} lacks facts a policy needs, or has them wrong: save the policy again.") from error


def _facts(data: Any) -> dict[str, Any]:
    """The fields of a policy file beside theta, from plain data that may be anything."""
    evaluation = data["evaluation"]
    facts = {
        "config": from_dict(TrainConfig, data["config"]),
        "spec": _spec(data["spec"]),
        "iteration": data["iteration"],
        "steps": data["steps"],
        "evaluation": None if evaluation is None else from_dict(Evaluation, evaluation, "evaluation"),
        "versions": data["versions"],
    }
    if any(type(facts[name]) is not int or facts[name] < 0 for name in ("iteration", "steps")):
        raise UserError("its iteration and steps must be counts.")
    if evaluation is not None and not (evaluation["returns"] and np.isfinite(facts["evaluation"].returns).all()):
        raise UserError("its evaluation must have finite returns.")
    if not isinstance(facts["versions"], dict) or not all(isinstance(v, str) for v in facts["versions"].values()):
        raise UserError("its versions must be text.")
    return facts


def _normaliser(tensors: dict[str, np.ndarray], config: TrainConfig, spec: EnvSpec) -> Normaliser | None:
    """The observation normaliser, which is there exactly where the policy asks for one."""
    names = {"observation_mean", "observation_scale"} if config.policy.normalise_observations else set()
    if set(tensors) != names:
        raise UserError("its vectors must be theta and, only where observations are normalised, a mean and a scale.")
    if not names:
        return None
    normaliser = Normaliser(tensors["observation_mean"].copy(), tensors["observation_scale"].copy())
    size = (spec.observation_size,)
    if not all(part.dtype == np.float64 and part.shape == size and np.isfinite(part).all() for part in normaliser):
        raise UserError(f"its observation mean and scale must be {spec.observation_size} finite numbers each.")
    return normaliser


def _spec(data: dict[str, Any]) -> EnvSpec:
    """The task's facts; a box of actions has bounds where a discrete space has a count."""
    actions_type = BoxActions if "low" in data["actions"] else DiscreteActions
    actions = from_dict(actions_type, data["actions"], "spec.actions")
    spec = from_dict(EnvSpec, {**data, "actions": actions}, "spec")
    if isinstance(actions, BoxActions):
        ends = zip(actions.low, actions.high, strict=True)
        bounded = len(actions.low) == len(actions.high) > 0 and all(low < high for low, high in ends)
        bounded = bounded and is_finite(np.array((actions.low, actions.high)))
    else:
        bounded = actions.count > 0
    if not bounded or spec.observation_size < 1:
        raise UserError("its spaces must have sizes and finite bounds.")
    return spec

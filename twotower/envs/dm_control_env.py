"""DeepMind Control through its own library, under ids such as dmc:cartpole-swingup."""

import importlib
import math
from collections.abc import Iterable
from typing import Any, final

import numpy as np

from twotower.config import EnvConfig, env_kwargs
from twotower.envs.base import Backend, EnvBatch, EnvSpec, SlotSeeds
from twotower.envs.loop import LoopBatch
from twotower.envs.opengl import cheapen
from twotower.envs.spaces import action_facts, flatten_dict
from twotower.errors import UserError

PREFIX = "dmc:"
PICTURE = (480, 480)  # height, width; what Gymnasium draws


@final
class DMControl(Backend):
    """Environments built by dm_control.suite.load."""

    package = "dm_control"
    extra = "dmc"

    def ids(self) -> Iterable[str]:
        """Every task of the suite."""
        return [f"{PREFIX}{domain}-{task}" for domain, task in _suite().ALL_TASKS]

    def has(self, env_id: str) -> bool:
        """Whether the suite has the task."""
        return env_id in self.ids()

    def inspect(self, env: EnvConfig, env_id: str) -> EnvSpec:
        """Build one environment and read its specifications."""
        from gymnasium.spaces import Box

        environment = _load(env, env_id)
        size = sum(math.prod(part.shape) for part in environment.observation_spec().values())
        spec = environment.action_spec()
        low, high = (np.broadcast_to(bound, spec.shape) for bound in (spec.minimum, spec.maximum))
        actions = action_facts(Box(low, high, spec.shape, np.float64), env_id)  # pyright: ignore[reportArgumentType]
        limit = environment._step_limit  # dm_control shows its time limit nowhere else
        own = None if math.isinf(limit) else math.ceil(limit)
        return EnvSpec(env_id, "dm_control", size, actions, env.max_episode_steps or own)

    def make_batch(self, env: EnvConfig, spec: EnvSpec, seeds: SlotSeeds) -> EnvBatch:
        """One environment a slot."""
        return DMControlBatch([_load(env, spec.env_id) for _ in seeds.slots], spec)


@final
class DMControlBatch(LoopBatch):
    """DeepMind Control environments in a Python loop."""

    def __init__(self, environments: list[Any], spec: EnvSpec) -> None:
        super().__init__(environments, spec)
        self._limit = spec.max_episode_steps or math.inf
        self._steps = [0] * len(environments)

    def _translate(self, actions: np.ndarray) -> np.ndarray:
        return actions.astype(np.float64)

    def _start(self, slot: int, seed: int) -> np.ndarray:
        environment = self.environments[slot]
        environment.task.random.seed(seed & 0xFFFFFFFF)  # a RandomState's seed has 32 bits
        self._steps[slot] = 0
        return flatten_dict(environment.reset().observation)

    def _step(self, slot: int, action: Any) -> tuple[np.ndarray, float, bool]:
        timestep = self.environments[slot].step(action)
        self._steps[slot] += 1
        return flatten_dict(timestep.observation), timestep.reward, timestep.last() or self._steps[slot] >= self._limit

    @property
    def steps_per_second(self) -> float:
        return 1.0 / self.environments[0].control_timestep()

    def _draw(self, slot: int) -> np.ndarray | None:
        cheapen(self.environments[slot].physics.model)
        return self.environments[slot].physics.render(*PICTURE, camera_id=0)


def _suite() -> Any:
    return importlib.import_module("dm_control.suite")


def _load(env: EnvConfig, env_id: str) -> Any:
    if env.wrappers:
        raise UserError(f"{env_id} comes from dm_control, which takes no Gymnasium wrappers: leave out --env.wrappers.")
    domain, _, task = env_id.removeprefix(PREFIX).partition("-")
    try:
        return _suite().load(domain, task, task_kwargs=env_kwargs(env) or None)
    except Exception as error:
        raise UserError(f"{env_id} cannot be built (with --env.kwargs {env.kwargs}): {error}") from error

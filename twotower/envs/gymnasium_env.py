"""The general path: any registered Gymnasium environment, with keyword arguments and wrappers."""

import importlib
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, final

import numpy as np

from twotower.config import EnvConfig, env_kwargs
from twotower.envs.base import Backend, EnvBatch, EnvSpec, SlotSeeds, missing
from twotower.envs.dm_control_env import PREFIX
from twotower.envs.loop import LoopBatch
from twotower.envs.opengl import cheapen, follow
from twotower.envs.spaces import action_facts, flattener, observation_size
from twotower.errors import UserError

# Where Gymnasium keeps the environments that need more than Gymnasium, and the extra that brings it.
EXTRAS = {"gymnasium.envs.mujoco": ("mujoco", "mujoco"), "gymnasium.envs.box2d": ("Box2D", "box2d")}
BULLET = "pybullet_envs_gymnasium"


@final
class Gymnasium(Backend):
    """Environments built by gymnasium.make."""

    package = "gymnasium"
    extra = "all"

    def ids(self) -> Iterable[str]:
        """Everything registered so far."""
        import gymnasium

        return list(gymnasium.registry)

    def has(self, env_id: str) -> bool:
        """Whether the id is registered, importing the module it names."""
        import gymnasium

        if env_id.startswith(PREFIX):
            return False
        name = _register(env_id)
        try:
            with _quiet():
                gymnasium.spec(name)
        except gymnasium.error.Error:
            return False
        return True

    def inspect(self, env: EnvConfig, env_id: str) -> EnvSpec:
        """Build one environment and read its spaces."""
        environment = make_one(env, env_id)
        try:
            limit = None if environment.spec is None else environment.spec.max_episode_steps
            size = observation_size(environment.observation_space, env_id)
            return EnvSpec(env_id, "gymnasium", size, action_facts(environment.action_space, env_id), limit)
        finally:
            environment.close()

    def make_batch(self, env: EnvConfig, spec: EnvSpec, seeds: SlotSeeds) -> EnvBatch:
        """One environment a slot."""
        return GymnasiumBatch([make_one(env, spec.env_id) for _ in seeds.slots], spec)


@final
class GymnasiumBatch(LoopBatch):
    """Gymnasium environments in a Python loop."""

    def __init__(self, environments: list[Any], spec: EnvSpec) -> None:
        super().__init__(environments, spec)
        self._flatten = flattener(environments[0].observation_space)
        space = environments[0].action_space
        self._dtype, self._first = space.dtype, getattr(space, "start", 0)

    def _translate(self, actions: np.ndarray) -> np.ndarray:
        return actions.astype(self._dtype) + self._dtype.type(self._first)

    def _start(self, slot: int, seed: int) -> np.ndarray:
        return self._flatten(self.environments[slot].reset(seed=seed)[0])

    def _step(self, slot: int, action: Any) -> tuple[np.ndarray, float, bool]:
        observation, reward, terminated, truncated, _ = self.environments[slot].step(action)
        return self._flatten(observation), reward, terminated or truncated

    @property
    def steps_per_second(self) -> float:
        return float(self.environments[0].metadata.get("render_fps", 30))

    def _draw(self, slot: int) -> np.ndarray | None:
        inner = self.environments[slot].unwrapped
        cheapen(getattr(inner, "model", None))
        follow(inner)
        return self.environments[slot].render()


def make_one(env: EnvConfig, env_id: str, render_mode: str | None = None) -> Any:
    """One environment with the user's arguments and wrappers around it."""
    import gymnasium

    name = _register(env_id)
    arguments = env_kwargs(env) if render_mode is None else {**env_kwargs(env), "render_mode": render_mode}
    try:
        with _quiet():
            environment = gymnasium.make(
                name, max_episode_steps=env.max_episode_steps, disable_env_checker=True, **arguments
            )
    except (ModuleNotFoundError, gymnasium.error.DependencyNotInstalled) as error:
        entry_point = str(gymnasium.spec(name).entry_point)
        for module, (package, extra) in EXTRAS.items():
            if entry_point.startswith(module):
                raise missing(env_id, getattr(error, "name", None) or package, extra) from error
        raise UserError(f"{env_id} needs a package that is not installed: {error}") from error
    except Exception as error:
        hint = f" (with --env.kwargs {env.kwargs})" if arguments else ""
        raise UserError(f"{env_id} cannot be built{hint}: {error}") from error
    for wrapper in env.wrappers:
        environment = _wrapped(environment, wrapper)
    return environment


def _wrapped(environment: Any, name: str) -> Any:
    module, _, attribute = name.partition(":")
    try:
        wrapper = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise UserError(f"--env.wrappers takes module:Class, but {name!r} cannot be imported: {error}.") from error
    try:
        return wrapper(environment)
    except Exception as error:
        raise UserError(f"The wrapper {name} cannot wrap the environment: {error}") from error


def _register(env_id: str) -> str:
    """Import the module that registers the id, and return the id without it."""
    module, separator, name = env_id.rpartition(":")
    if "BulletEnv-" in env_id and not separator:
        module = BULLET
    try:
        if module:
            importlib.import_module(module)
    except ImportError as error:
        if module == BULLET:
            raise missing(env_id, BULLET, "bullet") from error
        raise UserError(f"{env_id} names the module {module}, which cannot be imported: {error}.") from error
    return name


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence two deprecations no user of this package can act on."""
    with warnings.catch_warnings():
        # The paper's numbers belong to the older versions of the tasks.
        warnings.filterwarnings("ignore", message=".*is out of date.*", category=DeprecationWarning)
        # Box2D's bindings; turned into an error, this one kills the process.
        warnings.filterwarnings("ignore", message="builtin type .* has no __module__", category=DeprecationWarning)
        yield

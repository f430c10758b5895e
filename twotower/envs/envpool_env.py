"""The fast path: EnvPool, which steps whole batches in C++."""

import importlib
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, final

from twotower.config import EnvConfig, env_kwargs
from twotower.envs.base import Backend, EnvBatch, EnvSpec, SlotSeeds
from twotower.envs.dm_control_env import PREFIX
from twotower.envs.envpool_batch import EnvPoolBatch
from twotower.envs.spaces import action_facts, observation_size
from twotower.errors import UserError

DMC = "envpool.mujoco.dmc"
# In these families only resets draw random numbers, so a slot's stream can be found again by counting episodes.
RESETS_DRAW_ALONE = (DMC, "envpool.mujoco.gym", "envpool.classic_control")
NO_LIMIT = 2**31 - 1  # what EnvPool calls an episode without a limit


@final
class EnvPool(Backend):
    """Environments built by envpool.make."""

    package = "envpool"
    extra = "envpool"

    def ids(self) -> Iterable[str]:
        """Every id of the library."""
        return list(_registered())

    def has(self, env_id: str) -> bool:
        """Whether the library has the id, or the DeepMind Control task, under its own name."""
        registered, name = _registered(), pool_id(env_id)
        return name in registered and (not env_id.startswith(PREFIX) or registered[name][0] == DMC)

    def inspect(self, env: EnvConfig, env_id: str) -> EnvSpec:
        """Read the spaces off the library's specification; no environment is built."""
        import envpool

        if env.wrappers:
            raise UserError("EnvPool takes no wrappers: leave out --env.wrappers or give --env.backend gymnasium.")
        try:
            with _quiet():
                spec: Any = envpool.make_spec(pool_id(env_id), **_options(env))
                observed, actions = spec.observation_space, spec.action_space
        except Exception as error:
            raise UserError(f"EnvPool cannot build {env_id}: {str(error).splitlines()[0]}") from error
        if spec.config.max_num_players != 1:
            raise UserError(f"{env_id} has several players, and policies play alone.")
        limit = spec.config.max_episode_steps
        return EnvSpec(
            env_id,
            "envpool",
            observation_size(observed, env_id),
            action_facts(actions, env_id),
            None if limit == NO_LIMIT else int(limit),
        )

    def make_batch(self, env: EnvConfig, spec: EnvSpec, seeds: SlotSeeds) -> EnvBatch:
        """A pool with one environment a slot."""
        import envpool

        name, options = pool_id(spec.env_id), _options(env)

        def build(pool_seeds: list[int]) -> Any:
            with _quiet():
                return envpool.make(
                    name,
                    env_type="gymnasium",
                    num_envs=len(pool_seeds),
                    num_threads=1,
                    seed=pool_seeds,
                    **options,
                )

        return EnvPoolBatch(build, seeds, 64 if _registered()[name][0] in RESETS_DRAW_ALONE else 1)


def pool_id(env_id: str) -> str:
    """EnvPool's name of an id: dmc:fish-swim is FishSwim-v1 there, any other id is itself."""
    if not env_id.startswith(PREFIX):
        return env_id
    words = env_id.removeprefix(PREFIX).replace("-", "_").split("_")
    return "".join(word[:1].upper() + word[1:] for word in words) + "-v1"


def _registered() -> dict[str, tuple]:
    """Id -> (family's module, …) of everything in the library."""
    importlib.import_module("envpool")  # which fills the registry
    return importlib.import_module("envpool.registration").registry.specs


def _options(env: EnvConfig) -> dict[str, Any]:
    limit = {} if env.max_episode_steps is None else {"max_episode_steps": env.max_episode_steps}
    return {**env_kwargs(env), **limit}


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence Gymnasium's remark that EnvPool's float64 observation bounds lose precision: nobody reads them."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*precision lowered.*", category=UserWarning)
        yield

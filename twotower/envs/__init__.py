"""The only room that imports environment libraries: each only when a task asks for it."""

from collections.abc import Iterable

from twotower.config import EnvConfig, env_kwargs, nearest
from twotower.envs.base import (
    Backend,
    BoxActions,
    DiscreteActions,
    EnvBatch,
    EnvironmentFailure,
    EnvSpec,
    SlotSeeds,
    Transition,
    missing,
)
from twotower.envs.dm_control_env import PREFIX, DMControl
from twotower.envs.envpool_env import EnvPool
from twotower.envs.gymnasium_env import Gymnasium
from twotower.errors import UserError

__all__ = [
    "BACKENDS",
    "BoxActions",
    "DiscreteActions",
    "EnvBatch",
    "EnvSpec",
    "EnvironmentFailure",
    "SlotSeeds",
    "Transition",
    "inspect",
    "make_batch",
]

BACKENDS: dict[str, Backend] = {"envpool": EnvPool(), "dm_control": DMControl(), "gymnasium": Gymnasium()}


def inspect(env: EnvConfig, env_id: str, known: Iterable[str] = ()) -> EnvSpec:
    """The facts of a task; `known` are further names (the recipes') to suggest for a mistyped id."""
    if env.backend == "auto":
        candidates = _candidates(env, env_id)
    else:
        candidates = [env.backend]
    suggestions = list(known)
    for name in candidates:
        backend = BACKENDS[name]
        if not backend.installed:
            raise missing(env_id, backend.package, backend.extra, nearest(env_id, suggestions))
        if backend.has(env_id):
            return backend.inspect(env, env_id)
        suggestions += backend.ids()
    where = {"envpool": "EnvPool", "dm_control": "DeepMind Control", "gymnasium": "Gymnasium"}
    libraries = " and ".join(where[name] for name in candidates)
    raise UserError(f"No environment is called {env_id!r} in {libraries}{nearest(env_id, suggestions)}.")


def make_batch(env: EnvConfig, spec: EnvSpec, seeds: SlotSeeds) -> EnvBatch:
    """A batch of the task `inspect` described, with one slot for each of `seeds.slots`."""
    if spec.backend not in BACKENDS:
        raise UserError(f"The backend {spec.backend!r} is not one of {', '.join(BACKENDS)}.")
    backend = BACKENDS[spec.backend]
    if not backend.installed:
        raise missing(spec.env_id, backend.package, backend.extra)
    return backend.make_batch(env, spec, seeds)


def _candidates(env: EnvConfig, env_id: str) -> list[str]:
    """The backends to try for an id, the fastest first."""
    # EnvPool's tasks are fixed in C++: nothing can wrap them, and few take Gymnasium's arguments.
    plain = not env.wrappers and not env_kwargs(env)
    general = "dm_control" if env_id.startswith(PREFIX) else "gymnasium"
    return ["envpool", general] if plain and BACKENDS["envpool"].installed else [general]

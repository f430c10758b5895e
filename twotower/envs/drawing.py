"""Tasks that can draw themselves, without a screen: EnvPool's through their twins in other libraries."""

import dataclasses
import json
import os
import re

from twotower.config import EnvConfig, env_kwargs
from twotower.envs import BACKENDS, inspect
from twotower.envs.base import EnvSpec
from twotower.envs.envpool_env import pool_id
from twotower.envs.opengl import INSTALL_OPENGL, choose_opengl
from twotower.errors import UserError


def drawable(env: EnvConfig, spec: EnvSpec) -> tuple[EnvConfig, EnvSpec]:
    """The task in a library that can draw it, and what to build it with."""
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # pygame would look for a screen
    asked = os.environ.get("MUJOCO_GL", "EGL or OSMesa")
    opengl_works = choose_opengl()
    backend, env_id = twin(spec) if spec.backend == "envpool" else (spec.backend, spec.env_id)
    if _drawn_by_mujoco(backend, env_id) and not opengl_works:
        raise UserError(f"MuJoCo draws {env_id} with OpenGL ({asked}), which does not work here; run: {INSTALL_OPENGL}")
    kwargs = env_kwargs(env) | ({"render_mode": "rgb_array"} if backend == "gymnasium" else {})
    drawing = dataclasses.replace(
        env,
        backend=backend,  # pyright: ignore[reportArgumentType]
        kwargs=json.dumps(kwargs),
        max_episode_steps=spec.max_episode_steps,
    )
    return drawing, inspect(drawing, env_id)


def twin(spec: EnvSpec) -> tuple[str, str]:
    """The backend and id of the environment that an EnvPool task was translated from."""
    env_id = spec.env_id
    if BACKENDS["gymnasium"].has(env_id):
        return "gymnasium", env_id
    if BACKENDS["dm_control"].installed:
        for name in BACKENDS["dm_control"].ids():
            if pool_id(name) == pool_id(env_id):
                return "dm_control", name
    stem = re.sub(r"-v\d+$", "", env_id)
    versions = [name for name in BACKENDS["gymnasium"].ids() if re.fullmatch(re.escape(stem) + r"-v\d+", name)]
    if versions:  # LunarLanderContinuous-v2 is -v3 in Gymnasium
        return "gymnasium", max(versions, key=lambda name: int(name.rpartition("-v")[2]))
    raise UserError(
        f"{env_id} ran in EnvPool, which draws no pictures, and neither Gymnasium nor dm_control has it here; "
        'if it is a task of DeepMind Control, run: pip install "twotower[dmc]"'
    )


def _drawn_by_mujoco(backend: str, env_id: str) -> bool:
    if backend == "dm_control":
        return True
    import gymnasium

    registered = gymnasium.registry.get(env_id)
    return registered is not None and str(registered.entry_point).startswith("gymnasium.envs.mujoco")

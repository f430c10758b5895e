"""What Gymnasium's spaces mean to a policy: a flat observation and a box or a list of actions."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from twotower.envs.base import BoxActions, DiscreteActions
from twotower.errors import UserError

# MuJoCo and EnvPool write this, or the largest float, where a bound is infinite.
UNBOUNDED = 1e10


def observation_size(space: Any, env_id: str) -> int:
    """The length of the flattened observation, or why there is none."""
    from gymnasium.spaces import Box, Dict

    parts: list[Any] = list(space.spaces.values()) if isinstance(space, Dict) else [space]
    for part in parts:
        if not isinstance(part, Box):
            raise _unsupported_observation(env_id, f"{type(part).__name__} space")
        if part.dtype == np.uint8 and len(part.shape) > 1:
            raise _unsupported_observation(env_id, f"picture, Box{part.shape}")
    return sum(math.prod(part.shape) for part in parts)


def _unsupported_observation(env_id: str, found: str) -> UserError:
    return UserError(
        f"{env_id} observes a {found}, but policies read a Box of numbers or a Dict of them: translate it "
        "with a wrapper, --env.wrappers module:Class (gymnasium.wrappers:FlattenObservation turns Discrete and "
        "Tuple spaces into a Box)."
    )


def flattener(space: Any) -> Callable[[Any], np.ndarray]:
    """A function from the space's observations to flat arrays (s,)."""
    from gymnasium.spaces import Dict

    return flatten_dict if isinstance(space, Dict) else np.ravel


def flatten_dict(observation: Mapping[str, Any]) -> np.ndarray:
    """The parts of an observation end to end (s,), in the alphabetical order of their names."""
    # Libraries list the same parts in different orders (EnvPool and dm_control do): sorting makes them agree.
    return np.concatenate([np.ravel(observation[name]) for name in sorted(observation)])


def action_facts(space: Any, env_id: str) -> BoxActions | DiscreteActions:
    """The actions a policy may choose from, or how to make them so."""
    from gymnasium.spaces import Box, Discrete

    if isinstance(space, Discrete):
        return DiscreteActions(int(space.n), int(space.start))
    if not isinstance(space, Box) or len(space.shape) != 1:
        found = type(space).__name__ + (str(space.shape) if isinstance(space, Box) else "")
        raise UserError(
            f"{env_id} takes {found} actions, but policies choose from a one-dimensional Box or a Discrete "
            "space: translate them with a wrapper (--env.wrappers module:Class)."
        )
    low, high = space.low.astype(np.float64), space.high.astype(np.float64)
    if not (np.abs(low) < UNBOUNDED).all() or not (np.abs(high) < UNBOUNDED).all():
        raise UserError(
            f"{env_id} has unbounded actions (low {low.tolist()}, high {high.tolist()}), and candidates need a "
            "finite box: give a wrapper that bounds the space, --env.wrappers module:Class, for example "
            "class Bounded(gymnasium.ActionWrapper) whose __init__ sets self.action_space = "
            "gymnasium.spaces.Box(-1, 1, env.action_space.shape) and whose action(self, action) returns action "
            "(RescaleAction and ClipAction cannot do it: they need finite bounds)."
        )
    return BoxActions(tuple(low.tolist()), tuple(high.tolist()))

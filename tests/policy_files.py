"""Policies as they are before training, to be looked at."""

from typing import Any

import numpy as np

from twotower.api import merged
from twotower.es import Normaliser
from twotower.runs import PolicyFile
from twotower.training import build, task_config


def untrained(task: str, options: dict[str, Any] | None = None, seed: int = 3) -> PolicyFile:
    """A policy with random parameters, and a normaliser where it asks for one."""
    options = options or {}
    common = {"iterations": 1, "seed": seed, "env": {"max_episode_steps": 150}}
    config = merged(task_config(task, options.get("policy", {}).get("kind")), {**common, **options})
    _, spec, _, strategy = build(config)
    normaliser = None
    if config.policy.normalise_observations:
        size = spec.observation_size
        normaliser = Normaliser(np.linspace(-0.5, 0.5, size), np.linspace(0.5, 2.0, size))
    return PolicyFile(strategy.theta, config, spec, 1, 1, normaliser=normaliser)

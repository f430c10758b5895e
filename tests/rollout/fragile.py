"""Environments for worker processes: one that raises, one that never ends, one that returns nonsense."""

import time
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces


class Fragile(gymnasium.Env[Any, Any]):
    """Ends after five steps, or does in the third what it was told to do when its reset's seed is a multiple of 4."""

    observation_space = spaces.Box(-1, 1, (2,))

    def __init__(self, fault: str = "", discrete: bool = False) -> None:
        self.fault = fault
        self.action_space = spaces.Discrete(3, start=5) if discrete else spaces.Box(-1, 1, (2,))

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        assert seed is not None
        self.bad, self.steps = seed % 4 == 0, 0
        return self.np_random.uniform(-1, 1, 2).astype(np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(np.asarray(action, self.action_space.dtype)[()])
        self.steps += 1
        if self.fault and self.bad and self.steps == 3:
            if self.fault == "sleep":
                time.sleep(600)
            raise RuntimeError("the motor broke")
        reward = float(np.sum(action)) + float(self.np_random.normal())
        return self.np_random.uniform(-1, 1, 2).astype(np.float32), reward, self.steps == 5, False, {}


gymnasium.register("Fragile-v0", Fragile)

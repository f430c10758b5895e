"""Environments for worker processes: they raise, hang, or take their worker with them."""

import os
import signal
import time
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces


class Fragile(gymnasium.Env[Any, Any]):
    """Ends after five steps, or does in the third what it was told to do when its reset's seed is a multiple of 4.

    With a `flag` it does so only while that file exists; with `once` it removes the file first.
    """

    observation_space = spaces.Box(-1, 1, (2,))

    def __init__(self, fault: str = "", discrete: bool = False, flag: str = "", once: bool = False) -> None:
        self.fault, self.flag, self.once = fault, Path(flag), once
        self.action_space = spaces.Discrete(3, start=5) if discrete else spaces.Box(-1, 1, (2,))

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        assert seed is not None
        self.bad, self.steps = seed % 4 == 0, 0
        return self.np_random.uniform(-1, 1, 2).astype(np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(np.asarray(action, self.action_space.dtype)[()])
        self.steps += 1
        if self.fault and self.bad and self.steps == 3 and self._is_flagged():
            self._fail()
        reward = float(np.sum(action)) + float(self.np_random.normal())
        return self.np_random.uniform(-1, 1, 2).astype(np.float32), reward, self.steps == 5, False, {}

    def _is_flagged(self) -> bool:
        try:
            if self.once:
                self.flag.unlink()
            return self.flag.exists() or self.once
        except FileNotFoundError:
            return False

    def _fail(self) -> None:
        match self.fault:
            case "sleep":
                time.sleep(600)
            case "die":
                os.kill(os.getpid(), signal.SIGKILL)
            case "stop":
                os.kill(os.getpid(), signal.SIGSTOP)
            case _:
                raise RuntimeError("the motor broke")


gymnasium.register("Fragile-v0", Fragile)

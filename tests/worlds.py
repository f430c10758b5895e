"""A small world for whole runs: random starts, noisy steps, episodes of uneven length, and faults on demand."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

OBSERVATIONS = {
    "box": spaces.Box(-1, 1, (3,), np.float64),
    "matrix": spaces.Box(-1, 1, (1, 3), np.float64),
    "dict": spaces.Dict({"b": spaces.Box(-1, 1, (), np.float64), "a": spaces.Box(-1, 1, (2,), np.float64)}),
}
ACTIONS = {
    "box": spaces.Box(np.array([-1.0, 0.0], np.float32), np.array([1.0, 3.0], np.float32)),
    "discrete": spaces.Discrete(3, start=5),
    "half": spaces.Box(0, np.inf, (2,)),
}


class World(gymnasium.Env[Any, Any]):
    """Ends after three to eight steps; the episode that begins with `bad_seed` has the fault in its second."""

    def __init__(self, observation: str = "box", action: str = "box", fault: str = "", bad_seed: int = -1) -> None:
        self.observation_space, self.action_space = OBSERVATIONS[observation], ACTIONS[action]
        self.observation, self.fault, self.bad_seed = observation, fault, bad_seed

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.bad = self.fault and seed == self.bad_seed
        self.left = int(self.np_random.integers(3, 9))
        self.state = self.np_random.uniform(-1, 1, 3)
        return self.look(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action), action
        self.left -= 1
        self.state = np.clip(self.state + 0.3 * self.np_random.normal(size=3), -1, 1)
        reward = float(np.sum(action) * self.state[0])
        if self.bad:
            if self.fault == "raise":
                raise RuntimeError("the motor broke")
            reward = float(self.fault)
        return self.look(), reward, self.left == 0, False, {}

    def look(self) -> Any:
        if self.observation == "dict":
            return {"b": np.array(self.state[2]), "a": self.state[:2]}
        return self.state.reshape(self.observation_space.shape)


gymnasium.register("World-v0", f"{__name__}:World")

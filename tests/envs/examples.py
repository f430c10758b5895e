"""Small environments of our own, for spaces and failures that no registered task has."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces


class Echo(gymnasium.Env[Any, Any]):
    """Observes what the keyword arguments say and rewards with the action it was given."""

    def __init__(
        self, observation: str = "box", action: str = "discrete", fail: str = "", render_mode: str = ""
    ) -> None:
        self.observation_space = {
            "box": spaces.Box(-1, 1, (2, 3)),
            "dict": spaces.Dict({"b": spaces.Box(-1, 1, ()), "a": spaces.Box(0, 9, (2,), np.int64)}),
            "tuple": spaces.Tuple([spaces.Box(-1, 1, (2,))]),
            "text": spaces.Text(5),
            "graph": spaces.Graph(spaces.Box(-1, 1, (2,)), None),
            "image": spaces.Box(0, 255, (8, 8, 3), np.uint8),
            "nested": spaces.Dict({"a": spaces.Dict({"b": spaces.Box(-1, 1, (2,))})}),
        }[observation]
        self.action_space = {
            "discrete": spaces.Discrete(3, start=-1),
            "box": spaces.Box(np.array([-2.0, 1.0], np.float32), np.array([4.0, 1.5], np.float32)),
            "unbounded": spaces.Box(-np.inf, np.inf, (2,)),
            "above": spaces.Box(0, np.inf, (2,)),
            "below": spaces.Box(-np.inf, 0, (2,)),
            "matrix": spaces.Box(-1, 1, (2, 2)),
            "multi": spaces.MultiDiscrete([2, 2]),
        }[action]
        self.fail, self.render_mode = fail, render_mode

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        if self.fail == "reset":
            raise ValueError("no start")
        if isinstance(self.observation_space, spaces.Dict):
            return {"b": np.float32(0.5), "a": np.array([7, 8])}, {}
        return np.arange(6, dtype=np.float32).reshape(2, 3), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        if self.fail == "step":
            raise RuntimeError("the motor broke")
        assert self.action_space.contains(action)
        return self.reset()[0], float(np.sum(action)), False, False, {}


class Bounded(gymnasium.ActionWrapper[Any, Any, Any]):
    """The wrapper that the error about unbounded actions describes."""

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        self.action_space = spaces.Box(-1, 1, env.action_space.shape)

    def action(self, action: Any) -> Any:
        return action


class Doubled(gymnasium.RewardWrapper[Any, Any]):
    def reward(self, reward: Any) -> float:
        return 2.0 * reward


class Increased(gymnasium.RewardWrapper[Any, Any]):
    def reward(self, reward: Any) -> float:
        return reward + 1.0


gymnasium.register("Echo-v0", f"{__name__}:Echo", max_episode_steps=4)

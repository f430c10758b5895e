"""Explicit policy: the network outputs the action, squashed by tanh."""

from typing import final

import numpy as np

from twotower.actions import box
from twotower.actions.base import BoxActions
from twotower.policies.base import Policy
from twotower.towers import Sizes, forward


@final
class Explicit(Policy):
    """tanh of the output spreads over the box, or is binned over a discrete space's indices."""

    @property
    def tower_sizes(self) -> tuple[Sizes, ...]:
        return ((self.observation_size, *self.config.hidden, self.action_size),)

    def action(self, theta: np.ndarray, observation: np.ndarray) -> np.ndarray | int:
        """The action (a,), or its index: the reference of the kernel."""
        output = forward(theta, self.tower_sizes[0], self.config.activation, observation[None])[0]
        unit = 0.5 * (np.tanh(output) + 1.0)
        if isinstance(self.actions, BoxActions):
            low, span = box.bounds(self.actions)
            return low + unit * span
        return min(int(unit[0] * self.actions.count), self.actions.count - 1)

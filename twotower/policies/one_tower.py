"""Implicit one-tower policy: a network scores every (state, candidate) pair."""

from typing import final

import numpy as np

from twotower.policies.base import ImplicitPolicy
from twotower.towers import Sizes, forward


@final
class OneTower(ImplicitPolicy):
    """−E(s, a) is one network's output on the concatenated state and action."""

    @property
    def tower_sizes(self) -> tuple[Sizes, ...]:
        return ((self.observation_size + self.encoded_size, *self.config.hidden, 1),)

    def scores(self, theta: np.ndarray, observation: np.ndarray, encoded: np.ndarray) -> np.ndarray:
        states = np.broadcast_to(observation, (len(encoded), observation.size))
        pairs = np.concatenate([states, encoded], axis=1)
        return forward(theta, self.tower_sizes[0], self.config.activation, pairs)[:, 0]

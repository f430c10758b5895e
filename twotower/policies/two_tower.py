"""Implicit two-tower policy: E(s, a) = −K(l_S(s), l_A(a))."""

from typing import final

import numpy as np

from twotower.policies.base import ImplicitPolicy
from twotower.towers import Sizes, forward, num_params


@final
class TwoTower(ImplicitPolicy):
    """A state tower and an action tower that meet in one latent space; θ = (θ₁, θ₂)."""

    @property
    def tower_sizes(self) -> tuple[Sizes, ...]:
        latent = self.config.latent or self.encoded_size  # d
        state = (self.observation_size, *self.config.state_hidden, latent)
        action = (self.encoded_size, *self.config.action_hidden, latent)
        return state, action

    def state_latents(self, theta: np.ndarray, observations: np.ndarray) -> np.ndarray:
        """l_S(s), (n, d)."""
        return forward(theta[: self.state_params], self.tower_sizes[0], self.config.activation, observations)

    def action_latents(self, theta: np.ndarray, encoded: np.ndarray) -> np.ndarray:
        """l_A(a), (N, d)."""
        sizes = self.tower_sizes[1]
        return forward(theta[-num_params(sizes) :], sizes, self.config.activation, encoded)

    def scores(self, theta: np.ndarray, observation: np.ndarray, encoded: np.ndarray) -> np.ndarray:
        return self.action_latents(theta, encoded) @ self.state_latents(theta, observation[None])[0]

"""Candidates of a discrete space: all its actions, as one-hot vectors or as their index."""

import numpy as np

from twotower.actions.base import DiscreteActions


def encode(actions: DiscreteActions, encoding: str) -> np.ndarray:
    """Every action as the network sees it, (count, inputs) float32."""
    if encoding == "onehot":
        return np.eye(actions.count, dtype=np.float32)
    return np.arange(actions.count, dtype=np.float32)[:, None]

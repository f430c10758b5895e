"""The compiled side of a policy, one class for each way of finding an action."""

from typing import final

import numpy as np

from twotower.actions.base import DiscreteActions
from twotower.actions.refresh import Lifetime, lifetime
from twotower.kernels import bounded, implicit
from twotower.kernels.layout import TILE, aligned_zeros, padded
from twotower.policies.acting import Actor, ImplicitActor, sizes_array
from twotower.policies.base import ImplicitPolicy, Policy
from twotower.policies.explicit import Explicit
from twotower.policies.indexed import IndexedActor
from twotower.policies.searches import can_bound, pays, tree_pays
from twotower.search.bounding_tree import build_tree


@final
class ExplicitActor(Actor):
    """Evaluates the network."""

    def _act(self, slots: np.ndarray, observations: np.ndarray, chosen: np.ndarray, actions: np.ndarray) -> None:
        space = self.policy.actions
        implicit.choose_explicit(
            slots, observations, self.parameters, sizes_array(self.policy.tower_sizes[0]), self._activation, self.low,
            self.span, space.count if isinstance(space, DiscreteActions) else 0, self._scratch, chosen, actions,
        )  # fmt: skip


@final
class CornerActor(Actor):
    """Answers in closed form where the action tower is one matrix."""

    def _act(self, slots: np.ndarray, observations: np.ndarray, chosen: np.ndarray, actions: np.ndarray) -> None:
        state, action = (sizes_array(sizes) for sizes in self.policy.tower_sizes)
        implicit.choose_corner(
            slots, observations, self.parameters, state, action, self._activation, self.low, self.span,
            self._scratch, chosen, actions,
        )  # fmt: skip


@final
class FreshActor(ImplicitActor):
    """Draws new candidates at every step."""

    def _act(self, slots: np.ndarray, observations: np.ndarray, chosen: np.ndarray, actions: np.ndarray) -> None:
        implicit.choose_fresh(
            self._one_tower, slots, observations, self.parameters, self.keys, self.steps, *self._sizes,
            self._activation, self._table, self.low, self.span, self._count, self._sampling, self._refinement,
            self._scratch, chosen, actions,
        )  # fmt: skip


@final
class KeptActor(ImplicitActor):
    """Keeps candidates and their features for a rollout, or one set for all rollouts of an iteration."""

    def __init__(self, policy: ImplicitPolicy, num_slots: int) -> None:
        super().__init__(policy, num_slots)
        tiles = padded(self._count) // TILE
        sets = num_slots if self._per_rollout else 1
        self._kept_actions = aligned_zeros((sets, tiles, policy.encoded_size, TILE))
        sizes = policy.tower_sizes[-1]
        self._features_shape = (tiles, sizes[1] if self._one_tower else sizes[-2], TILE)
        self._kept_features = aligned_zeros((num_slots, *self._features_shape))
        self._shared_features = aligned_zeros((1, *self._features_shape))
        self._features_are_shared = False

    def begin(self, shared_key: int, shared_theta: np.ndarray | None) -> None:
        """Draw the shared set; with θ₂ the same for all members its features are shared as well."""
        super().begin(shared_key, shared_theta)
        if self._per_rollout:
            return
        self._draw(shared_key, self._kept_actions[0])
        self._features_are_shared = shared_theta is not None and not self._one_tower
        if shared_theta is not None and self._features_are_shared:
            self._fill(shared_theta.astype(np.float32), self._kept_actions[0], self._shared_features[0])

    def start(self, slot: int, theta: np.ndarray, key: int) -> None:
        super().start(slot, theta, key)
        if self._per_rollout:
            self._draw(key, self._kept_actions[slot])
        if not self._features_are_shared:
            offered = self._kept_actions[slot if self._per_rollout else 0]
            self._fill(self.parameters[slot], offered, self._kept_features[slot])

    def _act(self, slots: np.ndarray, observations: np.ndarray, chosen: np.ndarray, actions: np.ndarray) -> None:
        features = self._shared_features if self._features_are_shared else self._kept_features
        implicit.choose_kept(
            self._one_tower, slots, observations, self.parameters, self.keys, self.steps, *self._sizes,
            self._activation, self._kept_actions, features, self._count, self._sampling, self._scratch, chosen, actions,
        )  # fmt: skip


@final
class BoundedActor(ImplicitActor):
    """Exact search by branch and bound over the one set that all rollouts of an iteration share."""

    def begin(self, shared_key: int, shared_theta: np.ndarray | None) -> None:
        """Draw the shared set and build its tree, which no parameter changes."""
        super().begin(shared_key, shared_theta)
        tiles = np.zeros((padded(self._count) // TILE, self.low.size, TILE), np.float32)
        self._draw(shared_key, tiles)
        self._tree = build_tree(tiles.transpose(0, 2, 1).reshape(-1, self.low.size)[: self._count])
        leaves = self._tree.leaf_boxes.shape[2]
        self._winners = np.full((len(self.keys), bounded.REMEMBERED), -1, np.int64)
        self._bounded_scratch = (
            aligned_zeros((2, self.low.size, leaves)),
            aligned_zeros((self.low.size + 3, leaves)),
            aligned_zeros((leaves,)),
            np.zeros((2, leaves), np.int64),
        )

    def start(self, slot: int, theta: np.ndarray, key: int) -> None:
        super().start(slot, theta, key)
        self._winners[slot] = -1

    def _act(self, slots: np.ndarray, observations: np.ndarray, chosen: np.ndarray, actions: np.ndarray) -> None:
        bounded.choose_bounded(
            slots, observations, self.parameters, *self._sizes, self._activation, *self._tree, self._winners,
            self._scratch, self._bounded_scratch, chosen, self._visited, actions,
        )  # fmt: skip


def make_actor(policy: Policy, num_slots: int) -> Actor:
    """The compiled side of a policy, for a number of slots."""
    if isinstance(policy, Explicit):
        return ExplicitActor(policy, num_slots)
    assert isinstance(policy, ImplicitPolicy)
    if policy.config.search == "corner":
        return CornerActor(policy, num_slots)
    name = policy.config.search
    if name == "bounded" or (name == "auto" and can_bound(policy) and pays(policy)):
        return BoundedActor(policy, num_slots)
    if name not in ("auto", "brute_force") or (name == "auto" and tree_pays(policy)):
        return IndexedActor(policy, num_slots)
    if lifetime(policy.candidates, policy.actions) is Lifetime.STEP:
        return FreshActor(policy, num_slots)
    return KeptActor(policy, num_slots)

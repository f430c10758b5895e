"""The compiled side of a policy: buffers for a batch of slots, and one kernel call a step."""

from abc import ABC, abstractmethod
from typing import final

import numpy as np

from twotower.actions import box
from twotower.actions.base import BoxActions, DiscreteActions
from twotower.actions.refresh import Lifetime, lifetime
from twotower.kernels import bounded, implicit, layers
from twotower.kernels.layout import TILE, aligned_zeros, padded
from twotower.policies.base import ImplicitPolicy, Policy
from twotower.policies.explicit import Explicit
from twotower.policies.one_tower import OneTower
from twotower.search.bounding_tree import build_tree, levels_for

ACTIVATIONS = {"linear": layers.LINEAR, "relu": layers.RELU, "tanh": layers.TANH}


class Actor(ABC):
    """Acts for `num_slots` slots, each with a member's parameters, its rollout's key and its step count."""

    def __init__(self, policy: Policy, num_slots: int) -> None:
        self.policy = policy
        self.parameters = np.zeros((num_slots, policy.num_params), np.float32)
        self.keys = np.zeros(num_slots, np.uint64)
        self.steps = np.zeros(num_slots, np.int64)
        self._activation = ACTIVATIONS[policy.config.activation]
        self._chosen = np.zeros(num_slots, np.int64)
        self._actions = np.zeros((num_slots, policy.action_size))
        self._discrete = isinstance(policy.actions, DiscreteActions)
        low, span = box.bounds(policy.actions) if isinstance(policy.actions, BoxActions) else (np.zeros(0, "f4"),) * 2
        self.low, self.span = low, span
        width = max(max(sizes) for sizes in policy.tower_sizes)
        self._scratch = (
            aligned_zeros((5, width, TILE)),
            np.zeros((2, width)),
            np.zeros(width, np.float32),
            np.zeros((2, low.size), np.float32),
            np.zeros(low.size, np.float32),
        )

    def begin(self, shared_key: int, shared_theta: np.ndarray | None) -> None:
        """Make ready for an iteration; `shared_theta` is θ where no member perturbs the action tower."""
        return None

    def start(self, slot: int, theta: np.ndarray, key: int) -> None:
        """Put a member into a slot for one rollout."""
        self.parameters[slot] = theta
        self.keys[slot] = key
        self.steps[slot] = 0

    def act(self, slots: np.ndarray, observations: np.ndarray) -> np.ndarray:
        """Actions (n, a) for the slots' observations (n, s), or indices (n,) in a discrete space."""
        self._act(slots, observations, self._chosen, self._actions)
        self.steps[slots] += 1
        return self._chosen[: slots.size] if self._discrete else self._actions[: slots.size]

    def idle_actions(self, count: int) -> np.ndarray:
        """Placeholder actions for `count` slots, of the kind `act` returns."""
        return np.zeros_like(self._chosen, shape=count) if self._discrete else np.zeros((count, self._actions.shape[1]))

    @abstractmethod
    def _act(self, slots: np.ndarray, observations: np.ndarray, chosen: np.ndarray, actions: np.ndarray) -> None:
        """Write the choices for the slots into chosen and actions."""


@final
class ExplicitActor(Actor):
    """Evaluates the network."""

    def _act(self, slots: np.ndarray, observations: np.ndarray, chosen: np.ndarray, actions: np.ndarray) -> None:
        space = self.policy.actions
        implicit.choose_explicit(
            slots, observations, self.parameters, _sizes(self.policy.tower_sizes[0]), self._activation, self.low,
            self.span, space.count if isinstance(space, DiscreteActions) else 0, self._scratch, chosen, actions,
        )  # fmt: skip


@final
class CornerActor(Actor):
    """Answers in closed form where the action tower is one matrix."""

    def _act(self, slots: np.ndarray, observations: np.ndarray, chosen: np.ndarray, actions: np.ndarray) -> None:
        state, action = (_sizes(sizes) for sizes in self.policy.tower_sizes)
        implicit.choose_corner(
            slots, observations, self.parameters, state, action, self._activation, self.low, self.span,
            self._scratch, chosen, actions,
        )  # fmt: skip


class ImplicitActor(Actor):
    """What both lifetimes of candidates need."""

    def __init__(self, policy: ImplicitPolicy, num_slots: int) -> None:
        super().__init__(policy, num_slots)
        config = policy.config
        self._one_tower = isinstance(policy, OneTower)
        state = (policy.observation_size,) if self._one_tower else policy.tower_sizes[0]
        self._sizes = (_sizes(state), _sizes(policy.tower_sizes[-1]))
        self._table = policy.table
        self._sampling = np.array([config.choice == "sample", config.kernel == "softmax", config.temperature], float)
        self._refinement = np.array([config.refinements, config.refinement_radius, config.refinement_shrink], float)
        self._count = policy.candidates.count if not self._discrete else policy.encoded_set(0).shape[0]


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
        self._per_rollout = lifetime(policy.candidates, policy.actions) is Lifetime.ROLLOUT
        sets = num_slots if self._per_rollout else 1
        self._kept_actions = aligned_zeros((sets, tiles, policy.encoded_size, TILE))
        sizes = policy.tower_sizes[-1]
        self._features_shape = (tiles, sizes[1] if self._one_tower else sizes[-2], TILE)
        self._kept_features = aligned_zeros((num_slots, *self._features_shape))
        self._shared_features = aligned_zeros((1, *self._features_shape))
        self._features_are_shared = False

    def begin(self, shared_key: int, shared_theta: np.ndarray | None) -> None:
        """Draw the shared set; with θ₂ the same for all members its features are shared as well."""
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

    def _draw(self, key: int, kept_actions: np.ndarray) -> None:
        if self._discrete:
            encoded = self.policy.encoded_set(key)  # pyright: ignore[reportAttributeAccessIssue]
            numbers = np.arange(self._count)
            kept_actions[numbers // TILE, :, numbers % TILE] = encoded
            return
        implicit.draw_set(np.uint64(key), self._table, self.low, self.span, self._count, kept_actions)

    def _fill(self, theta: np.ndarray, kept_actions: np.ndarray, kept_features: np.ndarray) -> None:
        implicit.features_set(
            self._one_tower, theta, *self._sizes, self._activation, kept_actions, self._scratch, kept_features
        )

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
        tiles = np.zeros((padded(self._count) // TILE, self.low.size, TILE), np.float32)
        implicit.draw_set(np.uint64(shared_key), self._table, self.low, self.span, self._count, tiles)
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
            self._scratch, self._bounded_scratch, chosen, actions,
        )  # fmt: skip


def can_bound(policy: ImplicitPolicy) -> bool:
    """Whether branch and bound applies: a shared set in a box, scored by at most one hidden layer of ReLUs."""
    config = policy.config
    return (
        config.kind == "itt"
        and config.choice == "argmax"
        and isinstance(policy.actions, BoxActions)
        and lifetime(policy.candidates, policy.actions) is Lifetime.SHARED
        and (not config.action_hidden or (len(config.action_hidden) == 1 and config.activation == "relu"))
    )


def pays(policy: ImplicitPolicy) -> bool:
    """Whether bounds are likely to rule out more than they cost: only if the tree splits every dimension."""
    return policy.candidates.count >= 2048 and levels_for(policy.candidates.count) >= 1.5 * policy.action_size


def make_actor(policy: Policy, num_slots: int) -> Actor:
    """The compiled side of a policy, for a number of slots."""
    if isinstance(policy, Explicit):
        return ExplicitActor(policy, num_slots)
    assert isinstance(policy, ImplicitPolicy)
    if policy.config.search == "corner":
        return CornerActor(policy, num_slots)
    if policy.config.search == "bounded" or (policy.config.search == "auto" and can_bound(policy) and pays(policy)):
        return BoundedActor(policy, num_slots)
    if lifetime(policy.candidates, policy.actions) is Lifetime.STEP:
        return FreshActor(policy, num_slots)
    return KeptActor(policy, num_slots)


def _sizes(sizes: tuple[int, ...]) -> np.ndarray:
    return np.array(sizes, np.int64)

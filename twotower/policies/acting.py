"""What the compiled sides of all policies share: buffers for a batch of slots, and one call a step."""

from abc import ABC, abstractmethod

import numpy as np

from twotower.actions import box
from twotower.actions.base import BoxActions, DiscreteActions
from twotower.actions.refresh import Lifetime, lifetime
from twotower.kernels import audit, implicit, layers
from twotower.kernels.audit import AUDITED
from twotower.kernels.layout import TILE, aligned_zeros, padded
from twotower.policies.base import ImplicitPolicy, Policy
from twotower.policies.one_tower import OneTower

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
        self.asked = np.zeros((num_slots, 0, 0), np.float32)  # some queries of each slot's rollout, where search learns
        self.audits = np.zeros((num_slots, AUDITED))  # of each slot's rollout, see `kernels.audit`
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

    def learn(self, queries: np.ndarray) -> None:
        """Prepare for queries (n, features) such as these; only searches that learn override it."""
        return None

    def begin(self, shared_key: int, shared_theta: np.ndarray | None) -> None:
        """Make ready for an iteration; `shared_theta` is θ where no member perturbs the action tower."""
        return None

    def start(self, slot: int, theta: np.ndarray, key: int) -> None:
        """Put a member into a slot for one rollout."""
        self.parameters[slot] = theta
        self.keys[slot] = key
        self.steps[slot] = 0
        self.audits[slot] = 0.0

    def act(self, slots: np.ndarray, observations: np.ndarray) -> np.ndarray:
        """Actions (n, a) for the slots' observations (n, s), or indices (n,) in a discrete space."""
        self._act(slots, observations, self._chosen, self._actions)
        if self.policy.search.audit:
            self._audit(slots, observations)
        self.steps[slots] += 1
        return self._chosen[: slots.size] if self._discrete else self._actions[: slots.size]

    def idle_actions(self, count: int) -> np.ndarray:
        """Placeholder actions for `count` slots, of the kind `act` returns."""
        return np.zeros_like(self._chosen, shape=count) if self._discrete else np.zeros((count, self._actions.shape[1]))

    def _audit(self, slots: np.ndarray, observations: np.ndarray) -> None:
        """Compare some of the last choices with the best ones; actors that search override it."""
        return None

    @abstractmethod
    def _act(self, slots: np.ndarray, observations: np.ndarray, chosen: np.ndarray, actions: np.ndarray) -> None:
        """Write the choices for the slots into chosen and actions."""


class ImplicitActor(Actor):
    """What all ways of choosing among candidates need."""

    def __init__(self, policy: ImplicitPolicy, num_slots: int) -> None:
        super().__init__(policy, num_slots)
        config = policy.config
        self._one_tower = isinstance(policy, OneTower)
        state = (policy.observation_size,) if self._one_tower else policy.tower_sizes[0]
        self._sizes = (sizes_array(state), sizes_array(policy.tower_sizes[-1]))
        self._table = policy.table
        self._sampling = np.array([config.choice == "sample", config.kernel == "softmax", config.temperature], float)
        self._refinement = np.array([config.refinements, config.refinement_radius, config.refinement_shrink], float)
        self._count = policy.candidates.count if not self._discrete else policy.encoded_set(0).shape[0]
        self._visited = np.full(num_slots, self._count)
        self._set_keys = self.keys  # of the candidates each slot chooses among
        self._encoded = aligned_zeros((0, policy.encoded_size, TILE))
        self._per_rollout = lifetime(policy.candidates, policy.actions) is Lifetime.ROLLOUT
        if self._discrete:
            self._encoded = aligned_zeros((padded(self._count) // TILE, policy.encoded_size, TILE))
            numbers = np.arange(self._count)
            self._encoded[numbers // TILE, :, numbers % TILE] = policy.encoded_set(0)

    def begin(self, shared_key: int, shared_theta: np.ndarray | None) -> None:
        if not self._per_rollout:
            self._set_keys = np.full(len(self.keys), shared_key, np.uint64)

    def _draw(self, key: int, kept_actions: np.ndarray) -> None:
        """Fill kept_actions (tiles, inputs, TILE) with the candidates named by a key."""
        if self._discrete:
            kept_actions[:] = self._encoded
        else:
            implicit.draw_set(np.uint64(key), self._table, self.low, self.span, self._count, kept_actions)

    def _fill(self, theta: np.ndarray, kept_actions: np.ndarray, kept_features: np.ndarray) -> None:
        """Fill kept_features (tiles, features, TILE) with what the action tower makes of the candidates."""
        implicit.features_set(
            self._one_tower, theta, *self._sizes, self._activation, kept_actions, self._scratch, kept_features
        )

    def _audit(self, slots: np.ndarray, observations: np.ndarray) -> None:
        audit.audit_choices(
            self.policy.search.audit, self._one_tower, slots, observations, self.parameters, self.keys, self.steps,
            self._set_keys, self._encoded, *self._sizes, self._activation, self._table, self.low, self.span,
            self._count, self._chosen, self._visited, self._scratch, self.audits,
        )  # fmt: skip


def sizes_array(sizes: tuple[int, ...]) -> np.ndarray:
    """Layer sizes as kernels take them."""
    return np.array(sizes, np.int64)

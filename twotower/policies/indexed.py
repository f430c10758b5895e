"""Acting through an index of the candidates: any compiled member of the search family."""

from typing import final

import numpy as np

from twotower.errors import UserError
from twotower.kernels import indexed
from twotower.kernels.layout import TILE, aligned_zeros, padded
from twotower.policies.acting import ImplicitActor
from twotower.policies.base import ImplicitPolicy
from twotower.policies.searches import feature_size, make_index
from twotower.search.base import Tables
from twotower.search.directional_coreset import DirectionalCoreset
from twotower.search.sampler import Sampler

ASKED = 4  # queries that an episode hands on


@final
class IndexedActor(ImplicitActor):
    """Asks an index of the candidates' features: one for every slot at work, or one that all share.

    Features, not latents: the action tower's last matrix is applied to the query instead, as everywhere in training,
    so that exact indexes answer what brute force answers, to the bit.
    """

    def __init__(self, policy: ImplicitPolicy, num_slots: int) -> None:
        super().__init__(policy, num_slots)
        tiles, width = padded(self._count) // TILE, feature_size(policy)
        self._index = make_index(policy)
        self._offered = aligned_zeros((tiles, policy.encoded_size, TILE))
        self._features = aligned_zeros((tiles, width, TILE))
        self._rows = np.zeros((tiles * TILE, width), np.float32)
        self._tables: Tables = ()  # a set for every slot
        self._own_sets = np.arange(num_slots)
        self._sets = self._own_sets
        self._shared: tuple[int, bytes, bytes] | None = None
        self._past = np.zeros((0, width), np.float32)
        self._learns = isinstance(self._index, DirectionalCoreset) and policy.search.queries > 0
        if self._learns:
            self.asked = np.zeros((num_slots, ASKED, width), np.float32)
        self._queries = np.zeros((num_slots, width), np.float32)

    def learn(self, queries: np.ndarray) -> None:
        if self._learns and len(queries):
            assert isinstance(self._index, DirectionalCoreset)
            self._past = self._index.queries = queries

    def begin(self, shared_key: int, shared_theta: np.ndarray | None) -> None:
        """Draw the shared set; with θ₂ the same for all members its index is shared as well, while both last."""
        super().begin(shared_key, shared_theta)
        if self._per_rollout:
            return
        self._draw(shared_key, self._offered)
        self._sets = self._own_sets if shared_theta is None else np.zeros_like(self._own_sets)
        if shared_theta is None:
            self._shared = None
        elif len(self._own_sets):
            theta = shared_theta.astype(np.float32)
            stands_for = shared_key, theta[self.policy.state_params :].tobytes(), self._past.tobytes()
            if self._shared != stands_for:
                self._build(0, theta, shared_key)
            self._shared = stands_for

    def start(self, slot: int, theta: np.ndarray, key: int) -> None:
        super().start(slot, theta, key)
        if self._per_rollout:
            self._draw(key, self._offered)
        if self._shared is None:
            self._build(slot, self.parameters[slot], int(self._set_keys[slot]))

    def _build(self, place: int, theta: np.ndarray, seed: int) -> None:
        """Index the candidates offered under one θ₂."""
        self._fill(theta, self._offered, self._features)
        rows = self._features.transpose(0, 2, 1)
        self._rows.reshape(rows.shape)[:] = rows
        features = self._rows[: self._count]
        if not np.isfinite(features.sum(dtype=np.float64)):
            raise UserError(
                "The action tower's outputs are no longer finite, so no index can hold them: lower --sigma or "
                "--step-size."
            )
        old = tuple(stack[place : place + 1] for stack in self._tables)
        tables = self._index.tables_of(features, seed, old)
        if tables is not old:
            self._store(place, tables)

    def _store(self, place: int, tables: Tables) -> None:
        """Put one set's tables beside the others', whose shapes are the same while a search has as much to learn."""
        if [stack.shape[1:] for stack in self._tables] != [table.shape[1:] for table in tables]:
            sets = len(self._own_sets)
            self._tables = tuple(aligned_zeros((sets, *table.shape[1:]), table.dtype.type) for table in tables)
        for stack, table in zip(self._tables, tables, strict=True):
            stack[place] = table[0]

    def _act(self, slots: np.ndarray, observations: np.ndarray, chosen: np.ndarray, actions: np.ndarray) -> None:
        count = slots.size
        sets, queries, found, visited = self._sets[slots], self._queries[:count], chosen[:count], self._visited[:count]
        indexed.queries_of(
            slots, observations, self.parameters, *self._sizes, self._activation, self._index.scale_free,
            self._scratch, queries,
        )  # fmt: skip
        if self._learns:
            indexed.keep_some(slots, self.keys, self.steps, queries, self.asked)
        if self.policy.config.choice == "sample":
            assert isinstance(self._index, Sampler)
            names = np.empty(count, np.uint64)
            indexed.noise_keys(slots, self.keys, self.steps, names)
            type(self._index).draw(sets, queries, names, self._tables, found, visited)
        else:
            type(self._index).search(sets, queries, self._tables, found, visited)
        if not self._discrete:
            indexed.take(slots, found, self._set_keys, self._table, self.low, self.span, actions)

"""The slots of one EnvPool: brought to an iteration's start, then stepped by a single thread."""

from collections.abc import Callable
from typing import Any, final

import numpy as np
from numpy import count_nonzero  # a tenth of any()'s time on arrays as short as these

from twotower.envs.base import EnvBatch, SlotSeeds, Transition
from twotower.randomness import Domain, derive


@final
class EnvPoolBatch(EnvBatch):
    """One pool, rebuilt with fresh seeds every `reseed_every` iterations."""

    def __init__(self, build: Callable[[list[int]], Any], seeds: SlotSeeds, reseed_every: int) -> None:
        self._build = build
        self._seeds = seeds
        self._reseed_every = reseed_every
        self._pool: Any = None
        self._send: Any = None
        self._recv: Any = None
        self._epoch = -1

    @property
    def reseed_every(self) -> int:
        """Iterations that share one pool."""
        return self._reseed_every

    def begin(self, iteration: int, episodes: np.ndarray) -> None:
        """Bring every slot to the end of its last episode, rebuilding the pool where only that leads there."""
        epoch = iteration // self._reseed_every
        if epoch != self._epoch or self._playing.any() or (self._episodes > episodes).any():
            self._renew(epoch)
        behind = np.asarray(episodes) - self._episodes  # (slots,)
        self._skipped |= behind > 0
        self._any_skipped = bool(self._skipped.any())
        while (late := np.flatnonzero(behind > 0).astype(np.int32)).size:
            self._pool._reset(late)
            self._recv()
            behind[late] -= 1
        self._episodes[:] = episodes

    def advance(self, slots: np.ndarray, actions: np.ndarray, starting: np.ndarray, seeds: np.ndarray) -> Transition:
        """Send the slots, whose finished and fresh ones start over by themselves, and receive them in that order."""
        assert not count_nonzero(self._playing[slots] == starting), "a slot starts where, and only where, none plays"
        actions = np.ascontiguousarray(actions, self._action_type)
        # The raw pair costs 15 µs beyond the physics, step() 27: it checks and names every array each time.
        if self._any_skipped:
            answer = self._answer_skipped(slots, actions)
        else:
            self._send([slots, slots, actions])
            answer = self._recv()
        rewards = answer[self._reward].astype(np.float64)
        dones = answer[self._done]
        self._playing[slots] = ~dones
        if count_nonzero(starting):
            rewards[starting] = 0.0  # DeepMind Control tasks repeat the last episode's reward there
            self._episodes[slots[starting]] += 1
        parts = [answer[key].reshape(len(slots), -1) for key in self._observed]  # each (n, its size)
        if len(parts) == 1:
            return Transition(parts[0].astype(np.float64, copy=False), rewards, dones)
        return Transition(np.concatenate(parts, axis=1, dtype=np.float64), rewards, dones)

    def close(self) -> None:
        """Let go of the pool, which ends its thread."""
        self._pool = self._send = self._recv = None
        self._epoch = -1

    def _renew(self, epoch: int) -> None:
        """Build the pool of an epoch, every slot before its first episode."""
        self.close()  # before building, so that two pools never share the memory
        slots = self._seeds.slots
        pool = self._build([derive(self._seeds.seed, Domain.ENVIRONMENT, epoch, slot) & 0x7FFFFFFF for slot in slots])
        self._pool, self._send, self._recv, self._epoch = pool, pool._send, pool._recv, epoch
        keys = list(pool._state_keys)
        self._observed = [keys.index(key) for key in sorted(keys) if key == "obs" or key.startswith("obs:")]
        self._reward, self._done = keys.index("reward"), keys.index("done")
        self._action_type = pool.spec.action_array_spec["action"].dtype
        self._episodes = np.zeros(len(slots), np.int64)
        self._playing = np.zeros(len(slots), np.bool_)
        self._skipped = np.zeros(len(slots), np.bool_)  # stands at an episode's start but must go on to the next

    def _answer_skipped(self, slots: np.ndarray, actions: np.ndarray) -> dict[int, np.ndarray]:
        """Start skipped slots by a reset of their own: the pool would take their last reset's episode as begun."""
        skipped = self._skipped[slots]
        answers = []
        for chosen in (skipped, ~skipped):
            if chosen.any():
                ids = slots[chosen]
                self._pool._reset(ids) if chosen is skipped else self._send([ids, ids, actions[chosen]])
                answers.append((chosen, self._recv()))
        self._skipped[slots] = False
        self._any_skipped = bool(self._skipped.any())
        merged = {}
        for key in (*self._observed, self._reward, self._done):
            first = answers[0][1][key]
            merged[key] = np.empty((len(slots), *first.shape[1:]), first.dtype)
            for chosen, answer in answers:
                merged[key][chosen] = answer[key]
        return merged

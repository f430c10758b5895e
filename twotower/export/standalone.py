"""A policy that acts with NumPy alone: the source of every exported module, which the policy's numbers follow.

States are computed in 64 bits, scores rounded to 32, and of equal scores the first wins, as in training.
"""

import base64

import numpy as np

_MASK = 2**64 - 1
_NOISE = 1 << 40


class Policy:
    """Acts step by step; `reset` begins the next episode, whose candidates are its own."""

    def __init__(self, facts):
        self.facts = facts
        self.towers = [[np.asarray(matrix, np.float64) for matrix in tower] for tower in facts["towers"]]
        self.reset(0)

    def reset(self, episode=None):
        """Begin the next episode, or the one with this number: the same candidates as in that evaluation episode."""
        self.episode = self.episode + 1 if episode is None else episode
        self.step = 0
        facts = self.facts
        if facts["kind"] == "explicit" or facts["corner"]:
            return
        self.key = extend(facts["key"], self.episode + 1)
        if facts["refresh"] == "kept":
            self._offer(facts["candidates"])
        elif facts["refresh"] == "rollout":
            self._offer(draw(facts, self.key))

    def act(self, observation):
        """The action for one flat observation: an array (a,), or an index in a discrete space."""
        facts = self.facts
        state = np.asarray(observation, np.float64).ravel()
        if facts["mean"] is not None:
            state = (state - facts["mean"]) * facts["scale"]
        self.step += 1
        if facts["kind"] == "explicit":
            return self._explicit(state)
        if facts["kind"] == "iot":
            query = (self.towers[0][0][:, : state.size] @ state).astype(np.float32)
        else:
            query = (self.towers[1][-1].T @ self._forward(self.towers[0], state)).astype(np.float32)
        if facts["corner"]:
            return (facts["low"] + 0.5 * (np.sign(query) + 1.0) * facts["span"]).astype(np.float32)
        key = extend(self.key, self.step - 1)
        if facts["refresh"] == "step":
            self._offer(draw(facts, key))
        scores = self._scores(query)
        if facts["sample"]:
            scores = _with_noise(facts, scores, key)
        chosen = int(np.argmax(scores))  # of equals the first
        return chosen + facts["first"] if facts["discrete"] else self.candidates[chosen]

    def _explicit(self, state):
        unit = 0.5 * (np.tanh(self._forward(self.towers[0], state)) + 1.0)
        if self.facts["discrete"]:
            return min(int(unit[0] * self.facts["discrete"]), self.facts["discrete"] - 1) + self.facts["first"]
        return (self.facts["low"] + unit * self.facts["span"]).astype(np.float32)

    def _offer(self, candidates):
        """Take candidates (N, inputs), and their features: all of the action tower but its last matrix."""
        self.candidates, self.features = candidates, candidates
        if self.facts["kind"] == "iot":
            first = self.towers[0][0]
            self.features = _rounded(candidates @ first[:, first.shape[1] - candidates.shape[1] :].T)
            return
        for matrix in self.towers[1][:-1]:
            self.features = self._activate(_rounded(self.features @ matrix.T))

    def _scores(self, query):
        if self.facts["kind"] == "itt":
            return _rounded(self.features.astype(np.float64) @ query)
        values = self.features + query
        for matrix in self.towers[0][1:]:
            values = _rounded(self._activate(values) @ matrix.T)
        return values[:, 0]

    def _forward(self, tower, values):
        for matrix in tower[:-1]:
            values = self._activate(matrix @ values)
        return tower[-1] @ values

    def _activate(self, values):
        if self.facts["activation"] == "relu":
            return np.maximum(values, 0)
        return np.tanh(values) if self.facts["activation"] == "tanh" else values


def draw(facts, key):
    """The candidates (N, a) that a key names."""
    low, span, table = facts["low"], facts["span"], facts["table"]
    columns = []
    for d in range(len(low)):
        if table is not None:  # a Sobol sequence, shifted by the key
            bits = table[d] ^ np.uint32(extend(key, d) & 0xFFFFFFFF)
            columns.append(low[d] + span[d] * _unit(bits))
            continue
        bits = _hash(np.arange(facts["count"], dtype=np.uint32), extend(key, d - d % 2))
        halves = bits >> np.uint32(16) if d % 2 == 0 else bits & np.uint32(0xFFFF)
        step = span[d] * np.float32(2.0**-16)
        columns.append((low[d] + np.float32(0.5) * step) + step * halves.astype(np.float32))
    return np.stack(columns, axis=1)


def _with_noise(facts, scores, key):
    """Logits with Gumbel noise, whose argmax samples their softmax."""
    logits = scores.astype(np.float64)
    if facts["softmax_kernel"]:
        logits = np.exp(np.minimum(logits, 80.0))
    bits = _hash(np.arange(len(scores), dtype=np.uint32), extend(key, _NOISE))
    uniform = np.asarray(_unit(bits), np.float64) + 2.0**-25
    return _rounded(logits / facts["temperature"] - np.log(-np.log(uniform)))


def _rounded(values):
    return values.astype(np.float32)


def _unit(bits):
    return (bits >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)


def _hash(counters, key):
    """32 random bits for each counter under a key of 64 bits."""
    x = counters * np.uint32(0x9E3779B9) ^ np.uint32(key & 0xFFFFFFFF)
    x = (x ^ x >> np.uint32(16)) * np.uint32(0x21F0AAAD)
    x = x ^ np.uint32(key >> 32)
    x = (x ^ x >> np.uint32(15)) * np.uint32(0x735A2D97)
    return x ^ x >> np.uint32(15)


def extend(key, word):
    """The key of a part of what `key` names."""
    return _mix(key ^ _mix(word))


def _mix(x):
    x = (x + 0x9E3779B97F4A7C15) & _MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return x ^ (x >> 31)


def _packed(text, dtype, *shape):
    return np.frombuffer(base64.b64decode(text), dtype).reshape(shape)

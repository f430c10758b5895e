"""A trained policy as other libraries use one: observation in, action out."""

from collections.abc import Mapping
from pathlib import Path
from typing import final

import numpy as np

from twotower.actions.base import DiscreteActions
from twotower.actions.refresh import rollout_key, shared_key
from twotower.errors import UserError
from twotower.policies import make_policy
from twotower.policies.actor import make_actor
from twotower.randomness import Domain
from twotower.runs import Evaluation, PolicyFile, load_policy_source
from twotower.training.evaluate import evaluate_policy


@final
class TrainedPolicy:
    """A policy file ready to act; `predict` has Stable-Baselines3's signature."""

    def __init__(self, file: PolicyFile) -> None:
        self.file = file
        self.theta = file.theta
        config, spec = file.config, file.spec
        self._policy = make_policy(config.policy, config.candidates, spec.observation_size, spec.actions)
        self._policy.check_theta(file.theta)
        self._actor = make_actor(self._policy, 1)
        self._actor.begin(shared_key(config.candidates, config.seed, Domain.EVALUATION, 0), file.theta)
        self._started = -1

    def predict(
        self,
        observation: np.ndarray | Mapping[str, np.ndarray],
        state: tuple[np.ndarray, ...] | None = None,
        episode_start: np.ndarray | None = None,
        deterministic: bool = True,
    ) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
        """The action for one observation or a batch, and the state to pass along with the next.

        The state counts episodes and steps, which name the candidates drawn; `deterministic` changes nothing,
        because a policy's own choice (argmax or sample) is part of it.
        """
        observations, batched = self._observations(observation)
        count = len(observations)
        if state is None:
            episodes, steps = np.arange(count), np.zeros(count, np.int64)
        else:
            episodes, steps = state[0].copy(), state[1].copy()
            if episode_start is not None:
                ended = np.asarray(episode_start, bool) & (steps > 0)
                episodes[ended] += count
                steps[ended] = 0
        actions = np.stack([self._act(*each) for each in zip(observations, episodes, steps, strict=True)])
        return actions if batched else actions[0], (episodes, steps + 1)

    def evaluate(self, episodes: int = 20) -> Evaluation:
        """Fresh episodes in the task the policy was trained for; the same returns wherever it is loaded."""
        return evaluate_policy(self.file, episodes)

    def _act(self, observation: np.ndarray, episode: np.integer, step: np.integer) -> np.ndarray:
        actor, spec = self._actor, self.file.spec
        if episode != self._started:
            key = rollout_key(self.file.config.seed, Domain.EVALUATION, 0, int(episode))
            actor.start(0, self.theta.astype(np.float32), key)
            self._started = episode
        actor.steps[0] = step
        action = actor.act(np.zeros(1, np.int32), observation[None])[0]
        return action + spec.actions.first if isinstance(spec.actions, DiscreteActions) else action.astype(np.float32)

    def _observations(self, observation: np.ndarray | Mapping[str, np.ndarray]) -> tuple[np.ndarray, bool]:
        """Observations as the network takes them, rows (n, s), and whether they came as a batch."""
        size = self.file.spec.observation_size
        if isinstance(observation, Mapping):
            parts = [np.asarray(observation[name], np.float64) for name in sorted(observation)]
            batched = sum(part.size for part in parts) != size
            rows = len(parts[0]) if batched else 1
            flat = np.concatenate([part.reshape(rows, -1) for part in parts], axis=1)
        else:
            flat = np.asarray(observation, np.float64)
            batched = flat.size != size or (flat.ndim > 1 and flat.shape == (1, size))
            flat = flat.reshape(len(flat) if batched and flat.ndim > 1 else 1, -1)
        if flat.shape[1] != size:
            raise UserError(f"The policy takes observations of size {size}, not {flat.shape[1]} numbers.")
        if self.file.normaliser is not None:
            flat = self.file.normaliser(flat)
        return np.ascontiguousarray(flat), batched


def load(path: str | Path) -> TrainedPolicy:
    """The policy of a run folder or a policy file."""
    return TrainedPolicy(load_policy_source(path))

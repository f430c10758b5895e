"""A trained policy as other libraries use one: observation in, action out."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, final

import numpy as np

from twotower.actions.base import DiscreteActions
from twotower.actions.refresh import rollout_key, shared_key
from twotower.config import SearchConfig, TrainConfig, from_dict, to_dict
from twotower.errors import UserError
from twotower.policies import make_policy
from twotower.policies.actor import make_actor
from twotower.randomness import Domain
from twotower.rollout.audits import Audit
from twotower.runs import Evaluation, PolicyFile, load_policy_source
from twotower.training.evaluate import evaluate_and_audit, evaluate_policy


@final
class TrainedPolicy:
    """A policy file ready to act; `predict` has Stable-Baselines3's signature."""

    def __init__(self, file: PolicyFile) -> None:
        self.file = file
        self.theta: np.ndarray = file.theta  # (D,)
        config, spec = file.config, file.spec
        self._policy = make_policy(config.policy, config.candidates, spec.observation_size, spec.actions, config.search)
        self._policy.check_theta(file.theta)
        self._actor = make_actor(self._policy, 0)
        self._episodes = np.zeros(0, np.int64)

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
        actions = self._act(observations, episodes, steps)
        return actions if batched else actions[0], (episodes, steps + 1)

    def evaluate(self, episodes: int = 20) -> Evaluation:
        """Fresh episodes in the task the policy was trained for; the same returns wherever it is loaded."""
        return evaluate_policy(self.file, episodes)

    def evaluate_and_audit(self, episodes: int = 20) -> tuple[Evaluation, Audit | None]:
        """An evaluation, and how its choices compare with exact search where `search.audit` is above 0."""
        return evaluate_and_audit(self.file, episodes)

    def _act(self, observations: np.ndarray, episodes: np.ndarray, steps: np.ndarray) -> np.ndarray:
        """Actions as the environment takes them; a row acts like an evaluation's member of that episode."""
        config, space = self.file.config, self.file.spec.actions
        if len(self._episodes) != len(episodes):
            self._actor = make_actor(self._policy, len(episodes))
            self._actor.learn(self.file.queries)
            self._actor.begin(shared_key(config.candidates, config.seed, Domain.EVALUATION, 0), self.theta)
            self._episodes = np.full(len(episodes), -1)
        for row in np.flatnonzero(self._episodes != episodes).tolist():
            self._actor.start(row, self.theta, rollout_key(config.seed, Domain.EVALUATION, 0, int(episodes[row])))
        self._episodes = episodes
        self._actor.steps[:] = steps
        actions = self._actor.act(np.arange(len(episodes), dtype=np.int32), observations)
        return actions + space.first if isinstance(space, DiscreteActions) else actions.astype(np.float32)

    def _observations(self, observation: np.ndarray | Mapping[str, np.ndarray]) -> tuple[np.ndarray, bool]:
        """Observations as the network takes them, rows (n, s), and whether they came as a batch."""
        size = self.file.spec.observation_size
        named = observation if isinstance(observation, Mapping) else {"": observation}
        parts = [np.asarray(named[name], np.float64) for name in sorted(named)]
        # A batch of one is told from one observation by the dimension it adds.
        one = {part.shape[:1] for part in parts} == {(1,)} and max(part.ndim for part in parts) > 1
        batched = one or sum(part.size for part in parts) != size
        rows = max(len(parts[0]), 1) if batched and parts[0].ndim else 1
        if any(part.size % rows for part in parts) or sum(part.size for part in parts) != rows * size:
            shapes = ", ".join(str(part.shape) for part in parts)
            raise UserError(f"The policy takes observations of {size} numbers, not arrays of shape {shapes}.")
        flat = np.concatenate([part.reshape(rows, -1) for part in parts], axis=1)
        return flat if self.file.normaliser is None else self.file.normaliser(flat), batched


def load(
    path: str | Path,
    *,
    search: str | None = None,
    refresh: str | None = None,
    candidates: int | None = None,
    **options: Any,
) -> TrainedPolicy:
    """The policy of a run folder or a policy file, as it was trained or served by another search.

    `search` names the method and `options` are the fields of `SearchConfig`, as in load(path, search="srp", bits=6,
    refresh="fixed"); options of the search it was trained with do not carry over to another.
    """
    file = load_policy_source(path)
    config = file.config
    if search is not None and search != config.policy.search:
        config = replace(
            config, policy=replace(config.policy, search=search), search=SearchConfig(audit=config.search.audit)
        )
    offered = {"refresh": refresh, "count": candidates}
    changes = {
        "search": {**asdict(config.search), **options},
        "candidates": {**asdict(config.candidates), **{n: v for n, v in offered.items() if v is not None}},
    }
    config = from_dict(TrainConfig, {**to_dict(config), **changes}, "options")
    return TrainedPolicy(replace(file, config=config))

"""One decision of an implicit policy, taken apart."""

from dataclasses import dataclass, field
from itertools import product

import numpy as np

from twotower.actions.base import BoxActions, DiscreteActions
from twotower.analysis.episode import offered, watch
from twotower.config import nearest
from twotower.errors import UserError
from twotower.policies import make_policy
from twotower.policies.base import ImplicitPolicy
from twotower.policies.two_tower import TwoTower
from twotower.runs import PolicyFile
from twotower.search import METHODS, Index
from twotower.search.base import CompiledIndex
from twotower.search.scanned_subset import ScannedSubset
from twotower.search.signed_random_projections import Hashing

DEFAULT_STEP = 20
MOST_CORNERS = 2**12


@dataclass(frozen=True)
class Looked:
    """What a search looked at on the way to its answer."""

    name: str
    found: int
    scored: int
    """How many candidates it scored."""
    visited: np.ndarray | None  # (N,) bool, where the search can say which
    buckets: tuple[int, int] | None
    """Hash buckets probed, of how many."""
    regret: float
    """(best − found) / (best − mean) of the scores."""


@dataclass(frozen=True)
class Decision:
    """A state's candidates and how one of them was chosen."""

    file: PolicyFile = field(repr=False)
    episode: int
    step: int
    candidates: np.ndarray  # (N, a) as the environment takes them, or (N, 1) indices
    scores: np.ndarray  # (N,)
    latents: np.ndarray | None  # l_A, (N, d); None for one tower
    latent: np.ndarray | None  # l_S, (d,)
    taken: np.ndarray  # (a,) the action that was taken
    corner: np.ndarray | None  # (a,) the box's best corner
    corner_score: float | None
    looked: Looked | None

    @property
    def best(self) -> int:
        """The first of the best candidates."""
        return int(np.argmax(self.scores))

    @property
    def ties(self) -> int:
        """How many candidates share the best score."""
        return int(np.count_nonzero(self.scores == self.scores.max()))

    @property
    def is_discrete(self) -> bool:
        return isinstance(self.file.spec.actions, DiscreteActions)

    def said(self) -> list[str]:
        """The facts, a sentence a line."""
        config, best = self.file.config, self.best
        size = "" if self.latents is None else f", latents of {self.latents.shape[1]} numbers"
        lines = [
            f"{config.task} ({config.policy.kind}), episode {self.episode}, step {self.step}: "
            f"{len(self.scores):,} candidates{size}",
            f"best: candidate {best}, action {vector(self.candidates[best])}, score {self.scores[best]:.4g} "
            f"(mean {self.scores.mean():.4g})" + (f", shared by {self.ties}: the first wins" if self.ties > 1 else ""),
        ]
        if not np.allclose(self.candidates[best], self.taken, atol=1e-5):
            lines.append(f"taken: action {vector(self.taken)}")
        if self.corner is not None and self.corner_score is not None:
            lines.append(f"best corner of the box: {vector(self.corner)}, score {self.corner_score:.4g}")
        if self.looked is not None:
            look = self.looked
            buckets = "" if look.buckets is None else f" in {look.buckets[0]} of {look.buckets[1]} buckets"
            lines.append(
                f"search {look.name}: {look.scored:,} of {len(self.scores):,} candidates scored{buckets}, found "
                f"candidate {look.found}, regret {look.regret:.3g}"
            )
        return lines


def decide(file: PolicyFile, episode: int = 0, step: int | None = None, search: str | None = None) -> Decision:
    """The decision at a step of an evaluation episode, seen through the policy's search or another."""
    config, spec = file.config, file.spec
    policy = make_policy(config.policy, config.candidates, spec.observation_size, spec.actions, config.search)
    if not isinstance(policy, ImplicitPolicy):
        raise UserError(
            "An explicit policy computes its action from the state alone: there are no candidates to show. "
            "twotower video shows what it does."
        )
    if step is not None and step < 0:
        raise UserError(f"--step must be 0 or more, not {step}.")
    seen = watch(file, episode, (DEFAULT_STEP if step is None else step) + 1)
    if step is not None and len(seen.actions) <= step:
        raise UserError(f"Episode {episode} ends after {len(seen.actions)} steps: choose a --step below that.")
    step = len(seen.actions) - 1
    observation, encoded = seen.observations[step], offered(policy, file, episode, step)
    theta = file.theta.astype(np.float32)
    latents = latent = None
    if isinstance(policy, TwoTower):
        latents = policy.action_latents(theta, encoded)
        latent = policy.state_latents(theta, observation[None].astype(np.float32))[0]
    scores = policy.scores(theta, observation.astype(np.float32), encoded).astype(np.float32)
    discrete = isinstance(spec.actions, DiscreteActions)
    corner, corner_score = _corner(policy, theta, observation.astype(np.float32))
    return Decision(
        file, episode, step, np.arange(len(scores))[:, None] if discrete else encoded, scores, latents, latent,
        seen.actions[step], corner, corner_score, _look(policy, latents, latent, scores, search),
    )  # fmt: skip


def _corner(
    policy: ImplicitPolicy, theta: np.ndarray, observation: np.ndarray
) -> tuple[np.ndarray, float] | tuple[None, None]:
    """The box's best corner and its score: where a one-matrix action tower's best action always is."""
    if not isinstance(policy.actions, BoxActions) or 2 ** len(policy.actions.low) > MOST_CORNERS:
        return None, None
    limits = zip(policy.actions.low, policy.actions.high, strict=True)
    corners = np.array(list(product(*limits)), np.float32)
    scores = policy.scores(theta, observation, corners)
    best = int(np.argmax(scores))
    return corners[best], float(scores[best])


def _look(
    policy: ImplicitPolicy, latents: np.ndarray | None, latent: np.ndarray | None, scores: np.ndarray, name: str | None
) -> Looked | None:
    """Ask the policy's own index, or the one that is named, for the best of these latents."""
    own = policy.config.search
    if name is not None and name not in METHODS:
        raise UserError(f"--search must be one of {', '.join(METHODS)}, not {name!r}{nearest(name, METHODS)}.")
    if latents is None or latent is None:
        if name is not None:
            raise UserError("--search needs latents, which only two-tower policies (itt) have.")
        return None
    index = METHODS[name or (own if own in METHODS else "brute_force")]().build(latents)
    found = index.query(latent)
    spread = float(scores.max() - scores.mean())
    regret = float(scores.max() - scores[found]) / spread if spread > 0 else 0.0
    scored = int(index.visited[0]) if isinstance(index, CompiledIndex) and index.visited.size else len(scores)
    visited, buckets = _visited(index, latent, scored)
    scored = scored if visited is None else int(visited.sum())  # whole tiles count their padding
    return Looked(index.name, found, scored, visited, buckets, regret)


def _visited(index: Index, latent: np.ndarray, scored: int) -> tuple[np.ndarray | None, tuple[int, int] | None]:
    """Which candidates a search scored, and how many of its buckets it probed, where that can be told."""
    if scored >= len(index):
        return np.ones(len(index), bool), None
    visited = np.zeros(len(index), bool)
    if isinstance(index, Hashing):
        visited[index.looked_at(latent)] = True
        return visited, (int(index.buckets[0]), int((np.diff(index.tables[3][0]) > 0).sum()))
    if isinstance(index, ScannedSubset):
        visited[index.tables[1][0]] = True
        return visited, None
    return None, None


def vector(action: np.ndarray) -> str:
    """An action in words."""
    if len(action) == 1:
        return f"{action[0]:.3g}"
    return "[" + " ".join(f"{part:.2f}" for part in action) + "]"

"""What every policy is: a shape for θ and a way from (θ, state) to an action."""

from abc import ABC, abstractmethod

import numpy as np

from twotower.actions import box, discrete
from twotower.actions.base import ActionSpace, BoxActions
from twotower.config import CandidatesConfig, PolicyConfig, SearchConfig
from twotower.errors import UserError
from twotower.randomness import extend, hash32, unit_float
from twotower.towers import Sizes, num_params

NOISE_WORD = 1 << 40


class Policy(ABC):
    """A policy class for one task; parameters are passed in, so one object serves all members."""

    def __init__(
        self,
        config: PolicyConfig,
        candidates: CandidatesConfig,
        observation_size: int,
        actions: ActionSpace,
        search: SearchConfig,
    ) -> None:
        self.config = config
        self.search = search
        self.candidates = candidates
        self.observation_size = observation_size
        self.actions = actions

    @property
    @abstractmethod
    def tower_sizes(self) -> tuple[Sizes, ...]:
        """Layer sizes of each network, in the order of their weights in θ."""

    @property
    def num_params(self) -> int:
        """D, the length of θ."""
        return sum(num_params(sizes) for sizes in self.tower_sizes)

    @property
    def state_params(self) -> int:
        """D₁, the leading parameters that a lazy iteration still moves (all of θ without an action tower)."""
        return num_params(self.tower_sizes[0])

    def check_theta(self, theta: np.ndarray) -> None:
        """Refuse parameters of another architecture."""
        if theta.shape != (self.num_params,):
            raise UserError(f"The policy's towers take {self.num_params} parameters, not an array of {theta.shape}.")

    @property
    def action_size(self) -> int:
        """Numbers in an action as the environment takes it (1 for an index)."""
        return len(self.actions.low) if isinstance(self.actions, BoxActions) else 1


class ImplicitPolicy(Policy):
    """A policy that looks its action up among candidates: argmax, or a sample, of the negated energy K."""

    @abstractmethod
    def scores(self, theta: np.ndarray, observation: np.ndarray, encoded: np.ndarray) -> np.ndarray:
        """K (N,) of every encoded candidate (N, inputs) in a state: the reference of the fused kernel."""

    @property
    def encoded_size(self) -> int:
        """Numbers in a candidate as the network takes it."""
        return self.encoded_set(0).shape[1] if not isinstance(self.actions, BoxActions) else len(self.actions.low)

    def encoded_set(self, key: int) -> np.ndarray:
        """The candidates (N, inputs) named by a key; a discrete space always offers all its actions."""
        if isinstance(self.actions, BoxActions):
            return box.draw(self.actions, self.candidates.count, key, self.table)
        return discrete.encode(self.actions, self.candidates.encoding)

    @property
    def table(self) -> np.ndarray:
        """Sobol points for the box, or an empty table where draws are independent."""
        if isinstance(self.actions, BoxActions) and self.candidates.draw == "sobol":
            return box.sobol_points(self.candidates.count, len(self.actions.low))
        return box.NO_TABLE

    def choose(self, theta: np.ndarray, observation: np.ndarray, encoded: np.ndarray, step_key: int) -> int:
        """The index of the chosen candidate; ties go to the first."""
        scores = self.scores(theta, observation, encoded)
        if self.config.choice == "argmax":
            return int(np.argmax(scores))
        logits = np.exp(np.minimum(scores, 80.0)) if self.config.kernel == "softmax" else scores
        bits = hash32(np.arange(len(encoded), dtype=np.uint32), extend(step_key, NOISE_WORD))
        gumbel = -np.log(-np.log(unit_float(bits).astype(np.float64) + 2.0**-25))
        return int(np.argmax(logits / self.config.temperature + gumbel))

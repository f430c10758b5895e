"""What every evolution strategy shares: a population to evaluate, and a gradient step from its returns."""

import dataclasses
from abc import ABC, abstractmethod
from typing import Literal, NamedTuple, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike

from twotower.config import StrategyConfig, TrainConfig, from_dict, nearest
from twotower.errors import UserError
from twotower.es.directions import DIRECTIONS, Directions
from twotower.es.schedule import direction_count, moves_action_tower, sigma_at, step_size_at
from twotower.es.shaping import shape_returns
from twotower.es.step_rules import STEP_RULES, norm
from twotower.randomness import Domain, generator

NO_MEMORY = np.zeros((0, 0))


class StrategyState(NamedTuple):
    """All that a checkpoint needs."""

    theta: np.ndarray  # (D,) float64
    iteration: int
    memory: np.ndarray = NO_MEMORY  # (rows, D) float64: what the step rule remembers
    steps: int = 0  # of the environment so far, by which σ and η may decay


class Proposal(NamedTuple):
    """One iteration's population, as shipped to workers."""

    iteration: int
    theta: np.ndarray  # (D,) float64: the state tower's parameters first, then the action tower's
    sigma: float
    active: int  # leading coordinates that are perturbed
    directions: Directions  # (M, active)
    direction_of: np.ndarray  # (members,) int64, row of each member's direction; -1 for θ itself
    sign: np.ndarray  # (members,) float64

    def member(self, index: int) -> np.ndarray:  # (D,)
        """The parameters of one member, as a new array."""
        theta = self.theta.copy()
        row = int(self.direction_of[index])
        if row >= 0:
            theta[: self.active] += self.sigma * self.sign[index] * self.directions.rows(row, row + 1)[0]
        return theta


class Diagnostics(NamedTuple):
    """What an update tells about itself."""

    gradient_norm: float
    step_norm: float
    sigma: float
    step_size: float


class Choices(TypedDict, total=False):
    """The fields of `StrategyConfig` that a strategy takes as keyword arguments."""

    directions: Literal["orthogonal", "structured", "independent"]
    num_directions: int | None
    sigma: float
    sigma_decay: float
    step_size: float
    step_decay: float
    lazy: int
    lazy_decay: float
    shaping: Literal["none", "ranks"]
    top_directions: int | None
    scale_returns: bool
    step_rule: Literal["sgd", "momentum", "adam", "clipup"]
    momentum: float
    second_momentum: float
    max_speed: float | None
    weight_decay: float
    initial_scale: float
    initial_state_scale: float


class Strategy(ABC):
    """An evolution strategy: pure functions of a state, and ask/tell that keep the state for you."""

    def __init__(
        self,
        num_params: int,
        config: StrategyConfig | None = None,
        *,
        state_params: int | None = None,
        seed: int = 0,
        theta: ArrayLike | None = None,
        **choices: Unpack[Choices],
    ) -> None:
        """Take `config`, with `choices` in place of its fields; θ₀ is `theta`, or drawn from the seed."""
        state_params = num_params if state_params is None else state_params
        if not 1 <= state_params <= num_params:
            raise UserError(f"state_params must be between 1 and num_params = {num_params}, not {state_params}.")
        self.num_params: int = int(num_params)
        self.state_params: int = int(state_params)
        self.seed: int = int(seed)
        self.config: StrategyConfig = _checked(config or StrategyConfig(), choices, self.seed)
        self._state = self.init(self._drawn() if theta is None else theta)
        self._proposal: Proposal | None = None

    def init(self, theta: ArrayLike) -> StrategyState:
        """The state before the first iteration."""
        values = np.array(theta, dtype=np.float64)
        if values.shape != (self.num_params,) or not np.isfinite(values).all():
            raise UserError(f"theta must be an array of {self.num_params} finite numbers; its shape is {values.shape}.")
        return StrategyState(values, 0, np.zeros((STEP_RULES[self.config.step_rule].rows, self.num_params)))

    def propose(self, state: StrategyState) -> Proposal:
        """The population of a state; the same state always proposes the same bits."""
        iteration = state.iteration
        moves_all = moves_action_tower(self.config, self.seed, iteration)
        active = self.num_params if moves_all else self.state_params
        count = direction_count(self.config, active, self.num_params)
        sigma = sigma_at(self.config, iteration, state.steps)
        directions = DIRECTIONS[self.config.directions](self.seed, iteration, count, active)
        return Proposal(iteration, state.theta, sigma, active, directions, *self._layout(count))

    def gradient(self, proposal: Proposal, returns: ArrayLike) -> np.ndarray:  # (members,) -> (active,)
        """The estimate of ∇F over the active coordinates from one return a member, shaped as the choices say."""
        values = np.asarray(returns, dtype=np.float64)
        if values.shape != proposal.sign.shape:
            raise UserError(f"{len(proposal.sign)} returns are needed, one a member, not an array of {values.shape}.")
        bad = np.flatnonzero(~np.isfinite(values))
        if bad.size:
            raise UserError(
                f"Member {bad[0]} of iteration {proposal.iteration} returned {values[bad[0]]}, so θ was left"
                " as it was: returns must be finite."
            )
        values, counts = shape_returns(self.config, values, proposal.direction_of)
        weights = self._weights(values, proposal.sigma) * (len(counts) / counts.sum())
        return proposal.directions.weighted_sum(np.where(counts, weights, 0.0))

    def update(self, state: StrategyState, proposal: Proposal, returns: ArrayLike) -> tuple[StrategyState, Diagnostics]:
        """The state after a step along the gradient."""
        config, active = self.config, proposal.active
        step_size = step_size_at(config, state.iteration, state.steps)
        theta, memory = state.theta.copy(), state.memory.copy()
        with np.errstate(over="ignore", invalid="ignore"):  # refused in words below
            gradient = self.gradient(proposal, returns)
            rule = STEP_RULES[config.step_rule].step
            step, memory[:, :active] = rule(config, step_size, gradient, memory[:, :active])
            step = step - step_size * config.weight_decay * theta[:active]
            theta[:active] += step  # eq:theta_update
            diagnostics = Diagnostics(norm(gradient), norm(step), proposal.sigma, step_size)
        if not (np.isfinite(theta).all() and np.isfinite(memory).all()):
            raise UserError(
                f"The step of iteration {state.iteration} overflows, so θ was left as it was:"
                " scale the returns down, lower step_size or raise sigma."
            )
        return state._replace(theta=theta, iteration=state.iteration + 1, memory=memory), diagnostics

    @property
    def theta(self) -> np.ndarray:  # (D,)
        """A copy of the current parameters."""
        return self._state.theta.copy()

    def ask(self) -> np.ndarray:  # (members, D)
        """The population to evaluate next, a row a member."""
        self._proposal = self.propose(self._state)
        return np.stack([self._proposal.member(index) for index in range(len(self._proposal.sign))])

    def tell(self, returns: ArrayLike) -> Diagnostics:
        """Step along the gradient, given the asked population's returns (higher is better) in its order."""
        if self._proposal is None:
            raise UserError("tell takes the returns of the population that ask gave: call ask first.")
        self._state, diagnostics = self.update(self._state, self._proposal, returns)
        self._proposal = None
        return diagnostics

    def _drawn(self) -> np.ndarray:  # (D,)
        """θ₀ at the scales asked for."""
        theta = self.config.initial_scale * initial_theta(self.num_params, self.seed)
        if self.state_params < self.num_params:  # or else there are no two towers
            theta[: self.state_params] *= self.config.initial_state_scale
        return theta

    @abstractmethod
    def _layout(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Each member's row of directions (-1 for θ itself) and sign, for M = count."""

    @abstractmethod
    def _weights(self, returns: np.ndarray, sigma: float) -> np.ndarray:  # (members,) -> (M,)
        """Each direction's weight in the gradient."""


def initial_theta(num_params: int, seed: int) -> np.ndarray:  # (D,)
    """θ₀ ~ N(0, I)."""
    return generator(seed, Domain.PARAMETERS).standard_normal(num_params)


def _checked(config: StrategyConfig, choices: Choices, seed: int) -> StrategyConfig:
    for name in choices:
        if name not in Choices.__annotations__:
            raise UserError(f"A strategy takes no {name!r}{nearest(name, Choices.__annotations__)}.")
    plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in choices.items()}
    merged = from_dict(StrategyConfig, {**dataclasses.asdict(config), **plain}, "strategy")
    # The rules for values live in one place, which reads whole configurations.
    return TrainConfig(task="", seed=seed, strategy=merged).strategy

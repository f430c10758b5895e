"""What changes from one iteration to the next: σ, η, and whether the action tower moves."""

import math

from twotower.config import StrategyConfig
from twotower.errors import UserError
from twotower.randomness import Domain, generator


def moves_action_tower(config: StrategyConfig, seed: int, iteration: int) -> bool:
    """Whether both the period `lazy` and the decaying chance `lazy_decay` let the action tower move."""
    if iteration % config.lazy:
        return False
    chance = math.exp(-config.lazy_decay * iteration)
    return generator(seed, Domain.SCHEDULE, iteration).random() < chance


def direction_count(config: StrategyConfig, active: int, num_params: int) -> int:
    """M: as asked for or one a coordinate; a lazy iteration takes no more than fit orthogonally."""
    count = config.num_directions or active
    if active < num_params and config.directions != "independent":
        return min(count, active)
    return count


def sigma_at(config: StrategyConfig, iteration: int) -> float:
    """σ at an iteration."""
    return _decayed("sigma", config.sigma, config.sigma_decay, iteration)


def step_size_at(config: StrategyConfig, iteration: int) -> float:
    """η at an iteration."""
    return _decayed("step", config.step_size, config.step_decay, iteration)


def _decayed(name: str, initial: float, decay: float, iteration: int) -> float:
    try:
        value = initial * decay**iteration
    except OverflowError:
        value = math.inf
    if not 0 < value < math.inf:
        raise UserError(
            f"{name}_decay = {decay} leaves the range of floating point at iteration {iteration}:"
            " choose one nearer to 1, or fewer iterations."
        )
    return value

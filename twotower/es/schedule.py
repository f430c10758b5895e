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


def sigma_at(config: StrategyConfig, iteration: int, steps: int) -> float:
    """σ at an iteration that begins after so many environment steps."""
    return _decayed("sigma", config.sigma, config.sigma_decay, _decays(config, iteration, steps))


def step_size_at(config: StrategyConfig, iteration: int, steps: int) -> float:
    """η at an iteration that begins after so many environment steps."""
    return _decayed("step", config.step_size, config.step_decay, _decays(config, iteration, steps))


def _decays(config: StrategyConfig, iteration: int, steps: int) -> float:
    return iteration if config.decay_steps is None else min(steps / config.decay_steps, 1.0)


def _decayed(name: str, initial: float, decay: float, decays: float) -> float:
    try:
        value = initial * decay**decays
    except OverflowError:
        value = math.inf
    if not 0 < value < math.inf:
        raise UserError(
            f"{name}_decay = {decay} leaves the range of floating point after {decays:g} decays:"
            " choose one nearer to 1, or fewer iterations."
        )
    return value

"""Evolution strategies: from the returns of a perturbed population to the next parameters."""

from twotower.es.antithetic import Antithetic
from twotower.es.base import Diagnostics, Proposal, Strategy, StrategyState, initial_theta
from twotower.es.directions import DIRECTIONS, Directions
from twotower.es.forward_difference import ForwardDifference
from twotower.es.normaliser import Moments, Normaliser
from twotower.es.step_rules import STEP_RULES

STRATEGIES: dict[str, type[Strategy]] = {"antithetic": Antithetic, "forward_difference": ForwardDifference}

__all__ = [
    "DIRECTIONS",
    "STEP_RULES",
    "STRATEGIES",
    "Antithetic",
    "Diagnostics",
    "Directions",
    "ForwardDifference",
    "Moments",
    "Normaliser",
    "Proposal",
    "Strategy",
    "StrategyState",
    "initial_theta",
]

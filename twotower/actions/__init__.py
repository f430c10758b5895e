"""Which candidate actions exist, and when they are redrawn."""

from twotower.actions.base import ActionSpace, BoxActions, DiscreteActions

__all__ = ["ActionSpace", "BoxActions", "DiscreteActions"]

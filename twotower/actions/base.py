"""The two kinds of action space a policy chooses from."""

from dataclasses import dataclass


@dataclass(frozen=True)
class BoxActions:
    """A bounded box of continuous actions."""

    low: tuple[float, ...]
    high: tuple[float, ...]


@dataclass(frozen=True)
class DiscreteActions:
    """The actions 0 … count - 1; the environment counts from `first`."""

    count: int
    first: int = 0


ActionSpace = BoxActions | DiscreteActions

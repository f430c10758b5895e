"""What must be shown of training speed and memory, as data: cases and the bars they must pass."""

from dataclasses import dataclass
from typing import Any, Literal

from twotower.config import PolicyKind


@dataclass(frozen=True)
class Case:
    """A task and options that differ from its recipe's, with bars for some fields of its result."""

    task: str
    kind: PolicyKind = "itt"
    backend: Literal["auto", "envpool", "gymnasium", "dm_control"] = "auto"
    candidates: int | None = None
    refresh: Literal["step", "rollout", "iteration", "fixed"] | None = None
    search: str | None = None
    directions: int | None = None
    at_least: tuple[tuple[str, float], ...] = ()
    at_most: tuple[tuple[str, float], ...] = ()

    def verdicts(self, result: dict[str, Any]) -> dict[str, dict[str, Any]]:
        """Each bar with whether the result passes it; what was not measured does not."""
        bars = [(name, "at_least", bar) for name, bar in self.at_least]
        bars += [(name, "at_most", bar) for name, bar in self.at_most]
        verdicts = {}
        for name, kind, bar in bars:
            value = result[name]
            passed = value is not None and (value >= bar if kind == "at_least" else value <= bar)
            verdicts[name] = {kind: bar, "passed": passed}
        return verdicts


PAPER = (
    Case(
        "halfcheetah",
        at_least=(("ratio", 0.85), ("ratio_to_ceiling", 0.75)),
        at_most=(("peak_memory_bytes", 1.5e9),),
    ),
    Case("swimmer", at_least=(("ratio", 0.80),)),
    Case("walker2d", at_least=(("ratio", 0.80),)),
    Case("hopper", at_least=(("ratio", 0.75), ("ratio_to_ceiling", 0.70))),
    Case("lunarlander", at_least=(("ratio", 0.65),)),
    Case("fish-swim", at_least=(("ratio", 0.80),)),
    Case("halfcheetah", backend="gymnasium", at_least=(("ratio", 0.80),)),
    Case("halfcheetah", kind="iot", at_least=(("ratio", 0.60),)),
    Case("swimmer6", at_most=(("peak_memory_bytes", 4e9),)),
)


Bars = tuple[tuple[str, float], ...]


def _kept(candidates: int, search: str = "auto", at_least: Bars = (), at_most: Bars = ()) -> Case:
    """HalfCheetah with candidates kept for a rollout, and as many members as there are slots."""
    return Case("halfcheetah", "itt", "auto", candidates, "rollout", search, 32, at_least, at_most)


SEARCH = (
    _kept(2**10),
    _kept(2**14, at_least=(("ratio", 0.75), ("train_to_first", 0.85))),
    _kept(2**17, at_least=(("ratio", 0.50),), at_most=(("peak_memory_bytes", 2e9),)),
    _kept(2**14, "brute_force"),
    _kept(2**14, "coreset"),
)
SUITES = {"paper": PAPER, "search": SEARCH}

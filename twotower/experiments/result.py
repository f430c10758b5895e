"""What a published result is: the runs it needs, and how finished ones become tables and figures."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from twotower.config import PolicyKind
from twotower.experiments.plan import Choice, Planned
from twotower.experiments.records import Finished

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Table:
    """Rows of cells as Markdown shows them."""

    title: str
    headings: tuple[str, ...]
    rows: list[tuple[str, ...]]
    note: str = ""


@dataclass(frozen=True)
class Findings:
    """What finished runs come to."""

    tables: list[Table]
    figures: dict[str, "Callable[[], Figure]"] = field(default_factory=dict)
    data: dict[str, Any] = field(default_factory=dict)
    """Numbers behind tables and figures that are not a run's own."""


@dataclass(frozen=True)
class Evidence:
    """All there is to conclude from."""

    choice: Choice
    plan: Sequence[Planned]
    runs: Sequence[Finished]

    def of(self, task: str, kind: PolicyKind = "itt", variant: str = "") -> list[Finished]:
        """A cell's runs, in the order of their seeds and of one length.

        Where lengths differ, the longest counts that at least three seeds (or all that were planned) reached.
        """
        found = [run for run in self.runs if run.planned.cell == (task, kind, variant)]
        wanted = min(3, len({run.config.seed for run in self.plan if run.cell == (task, kind, variant)}))
        by_length: dict[int, list[Finished]] = {}
        for run in found:
            by_length.setdefault(run.iterations, []).append(run)
        enough = [length for length, runs in by_length.items() if len(runs) >= wanted]
        most = sorted(by_length, key=lambda length: (len(by_length[length]), length))
        chosen = max(enough) if enough else (most[-1] if most else 0)
        return sorted(by_length.get(chosen, []), key=lambda run: run.seed)

    def tasks(self) -> list[str]:
        """The tasks of the plan, in its order."""
        return list(dict.fromkeys(run.config.task for run in self.plan))

    def planned(self, task: str, kind: PolicyKind = "itt", variant: str = "") -> list[Planned]:
        """The runs that a cell should have."""
        return [run for run in self.plan if run.cell == (task, kind, variant)]


@dataclass(frozen=True)
class Result:
    """A published table or figure."""

    name: str
    title: str
    published: str
    """Where the paper has it."""
    plan: Callable[[Choice], list[Planned]]
    conclude: Callable[[Evidence], Findings]
    compares_policies: bool = False
    """Whether --policies means something."""
    extra_seconds: float = 0.0
    """What concluding costs beyond training, on one core."""

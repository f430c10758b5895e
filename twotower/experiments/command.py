"""What `twotower reproduce` takes, and what it does."""

import json
import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tyro.conf import Positional

from twotower import experiments
from twotower.config import PolicyKind
from twotower.errors import UserError
from twotower.experiments.costs import total
from twotower.experiments.folders import Kept
from twotower.experiments.plan import Choice, Planned, Size
from twotower.experiments.progress import Progress
from twotower.experiments.queue import Interrupted, carry_out
from twotower.experiments.result import Evidence, Result
from twotower.experiments.text import cost
from twotower.experiments.write import table_markdown, write
from twotower.training import build


@dataclass(frozen=True)
class ReproduceOptions:
    """Reproduce published tables and figures: train what they need, and write them beside the paper's values."""

    result: Positional[str] = ""
    """A result's name (see --list), or all."""
    budget: Size = "quick"
    """quick: short runs that show that everything works; paper: the paper's iterations and seeds."""
    seeds: int | None = None
    """Runs a cell, seeds 0, 1, …; None takes the paper's number, or 2 for a quick budget."""
    tasks: tuple[str, ...] = ()
    """Recipes or environment ids in place of the result's own."""
    policies: tuple[PolicyKind, ...] = ()
    """Policies to compare, where a result compares policies."""
    iterations: int | None = None
    """Train no run longer than this; the tables say so."""
    workers: int | None = None
    """Cores to use: so many runs side by side, one worker each. None takes all."""
    runs: str = "runs/reproduce"
    """Where run folders are kept; finished ones are not run again, interrupted ones go on."""
    out: str = "results"
    """Where a folder for each result is written, and runs/ with a record of each finished run, which counts as run."""
    collect: bool = False
    """Train nothing: write tables and figures from the runs that are finished, shorter ones included."""
    list: bool = False
    """List the results and what they cost."""
    json: bool = False
    """With --list: print JSON."""

    def __post_init__(self) -> None:
        for name, value in (("seeds", self.seeds), ("iterations", self.iterations), ("workers", self.workers)):
            if value is not None and value < 1:
                raise UserError(f"--{name} must be at least 1, not {value}.")
        if not self.result and not self.list:
            raise UserError("Name a result, such as twotower reproduce scores, or all; see: twotower reproduce --list")

    def results(self) -> "Sequence[Result]":
        """The results asked for."""
        every = self.result in ("", "all")
        found = [experiments.get(name) for name in experiments.RESULTS] if every else [experiments.get(self.result)]
        if self.policies and not every and not found[0].compares_policies:
            raise UserError(f"{self.result} does not compare policies: leave out --policies.")
        return found

    def choice(self) -> Choice:
        """What decides which runs there are."""
        workers = self.workers or os.cpu_count() or 1
        return Choice(self.budget, self.seeds, self.tasks, self.policies, self.iterations, workers)


def reproduce(options: ReproduceOptions, arguments: Sequence[str]) -> int:
    """Train what is lacking, then write each result's folder."""
    results, choice = options.results(), options.choice()
    if options.list:
        return _list(options, results)
    plans = {result.name: result.plan(choice) for result in results}
    every = [run for plan in plans.values() for run in plan]
    kept, failures = Kept(Path(options.runs), Path(options.out) / "runs"), {}
    if not options.collect:
        _check(every, kept.folders)
        try:
            failures = carry_out(every, kept, choice.workers, Progress())
        except Interrupted:
            done = sum(kept.is_finished(run) for run in {run.name: run for run in every}.values())
            print(f"Stopped with {done} runs finished. Go on with the same command; --collect writes what there is.")
            return 130
    for result in results:
        _conclude(result, plans[result.name], choice, options, kept, arguments, failures)
    return 1 if failures else 0


def _check(runs: Sequence[Planned], folder: Path) -> None:
    """Refuse what no run could be, before any begins."""
    for run in {run.cell: run for run in runs}.values():
        build(run.config)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"Cannot make the folder {folder}: {error.strerror}.") from error


def _conclude(
    result: Result,
    plan: Sequence[Planned],
    choice: Choice,
    options: ReproduceOptions,
    kept: Kept,
    arguments: Sequence[str],
    failures: dict[str, str],
) -> None:
    command = f"twotower {shlex.join(['reproduce', *arguments])}"
    evidence = Evidence(choice, plan, [found for run in plan if (found := kept.finished(run, command)) is not None])
    findings = result.conclude(evidence)
    folder = Path(options.out) / result.name
    failed = {run.name: failures[run.name] for run in plan if run.name in failures}
    write(folder, result, evidence, findings, command, failed)
    if len(options.results()) == 1:
        for table in findings.tables:
            rows = {"headings": table.headings, "rows": table.rows}
            print(f"{table.title}\n{table_markdown(rows)}\n")
    print(f"{folder}: " + (f"{len(evidence.runs)} of {len(plan)} runs finished" if plan else "done, no runs needed"))


def _list(options: ReproduceOptions, results: "Sequence[Result]") -> int:
    """The results with what they cost, at each budget, on one core."""
    rows, together = [], {"quick": {}, "paper": {}}
    for result in results:
        row: dict[str, Any] = {"result": result.name, "title": result.title, "published": result.published}
        for size in ("quick", "paper"):
            choice = Choice(size, options.seeds, options.tasks, options.policies, options.iterations)
            plan = result.plan(choice)
            together[size] |= {run.name: run for run in plan}
            seconds = total(plan) + result.extra_seconds
            row[size] = {"runs": len(plan), "core_minutes": round(seconds / 60, 1)}
        rows.append(row)
    if options.json:
        print(json.dumps(rows))
        return 0
    line = "{:22} {:44.44} {:20} {:>24} {:>24}".format
    print(line("result", "content", "the paper's", "quick: runs, cost", "paper: runs, cost"))
    for row in rows:
        cells = [f"{row[size]['runs']}, {cost(60 * row[size]['core_minutes'])}" for size in ("quick", "paper")]
        print(line(row["result"], row["title"], row["published"], *cells))
    extra = sum(result.extra_seconds for result in results)
    cells = [f"{len(runs)}, {cost(total(runs.values()) + extra)}" for runs in together.values()]
    print(line("all", "each run once, whoever shares it", "", *cells))
    print("Costs are estimates for one core of the kind we measured on.")
    return 0

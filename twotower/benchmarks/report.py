"""Throughput results as a table for people, and as files to keep."""

import json
import shlex
from pathlib import Path
from typing import Any

from twotower.errors import UserError
from twotower.files.atomic import reason, write_atomically

HEADINGS = ("task", "train", "to first", "limit", "ratio", "ceiling", "to ceiling", "memory")
EXPLANATION = """\
task: policy, N / when candidates are redrawn, search unless auto, library, executor, bytes an iteration sends / gets.
train: environment steps a second of whole training iterations (ask, rollouts, evaluation member, tell, logging).
to first: train / train of the first row.
limit: the same calls of the same environments in the same processes, replayed without a policy.
ratio: train / limit within a repetition; the median, and the quartiles below it.
ceiling: one process a core, 32 environments each, random actions, resets not counted as steps.
memory: sum of the peak resident sizes of coordinator and workers while training."""


def cells(result: dict[str, Any]) -> list[str]:
    """A result as a row under HEADINGS, several lines a cell, with the bars it had to pass."""
    memory = result["peak_memory_bytes"]
    offered = f", {result['candidates']:,} / {result['refresh']}" if result["candidates"] else ""
    searched = f", {result['search']}" if result["search"] not in (None, "auto") else ""
    return [
        f"{result['task']}\n{result['policy']}{offered}{searched}\n{result['backend']}\n"
        f"{result['executor']}, {result['bytes_out']:,} / {result['bytes_back']:,}",
        f"{result['train_steps_per_s']:,.0f}",
        f"{result['train_to_first']:.2f}" + _bar(result, "train_to_first"),
        f"{result['limit_steps_per_s']:,.0f}",
        _ratio(result, "ratio"),
        f"{result['ceiling_steps_per_s']:,.0f}",
        _ratio(result, "ratio_to_ceiling"),
        ("-" if memory is None else f"{memory / 1e9:.2f} GB") + _bar(result, "peak_memory_bytes", 1e9),
    ]


def _ratio(result: dict[str, Any], name: str) -> str:
    quartiles = result["spread"][name]
    low, high = quartiles["lower_quartile"], quartiles["upper_quartile"]
    return f"{result[name]:.2f}\n{low:.2f}–{high:.2f}" + _bar(result, name)


def _bar(result: dict[str, Any], name: str, unit: float = 1.0) -> str:
    bar = result["bars"].get(name)
    if bar is None:
        return ""
    sign, value = ("≥", bar["at_least"]) if "at_least" in bar else ("≤", bar["at_most"])
    return f"\n{sign} {value / unit:g} {'✓' if bar['passed'] else '✗'}"


def print_table(results: list[dict[str, Any]]) -> None:
    """Print the results for people."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE, padding=(0, 1, 0, 0), caption=EXPLANATION, caption_justify="left")
    for heading in HEADINGS:
        table.add_column(heading, justify="left" if heading == "task" else "right")
    for result in results:
        table.add_row(*cells(result))
        table.add_section()
    Console().print(table)


def make_folder(folder: Path) -> None:
    """Make the folder for results, or say why it cannot be made."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"Cannot make the folder {folder}: {reason(error)}.") from error


def write_results(folder: Path, results: list[dict[str, Any]], arguments: list[str]) -> None:
    """Write results.json and README.md, which says how they were made."""
    write_atomically(folder / "results.json", (json.dumps(results, indent=2) + "\n").encode())
    last = results[-1]
    made = [f"{name} {version}" for name, version in last["versions"].items()]
    rows = [[cell.replace("\n", "<br>") for cell in cells(result)] for result in results]
    table = [list(HEADINGS), ["---"] + ["---:"] * (len(HEADINGS) - 1), *rows]
    lines = [
        "# Training throughput",
        f"`twotower {shlex.join(arguments)}` on {last['date']}, {last['workers']} workers, {last['repetitions']} "
        "repetitions; `results.json` has all spreads.",
        "\n".join(f"| {' | '.join(row)} |" for row in table),
        "\n".join(f"- {line}" for line in EXPLANATION.splitlines()),
        f"Versions: {', '.join(made)}.",
    ]
    write_atomically(folder / "README.md", ("\n\n".join(lines) + "\n").encode())

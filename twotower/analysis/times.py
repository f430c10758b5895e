"""Where the time of a run's iterations went: what to mend, and what would not help."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from tyro.conf import Positional

from twotower.errors import UserError
from twotower.runs import RunFolder, read_metrics

# What an iteration consists of, as its row of metrics has it.
PHASES: dict[str, tuple[str, Callable[[dict[str, Any]], float]]] = {
    "ask": ("directions and plan, in the coordinator", lambda row: row["seconds_ask"]),
    "ship": ("the message to every worker", lambda row: row["seconds_ship"]),
    "rollouts": ("the median worker's share", lambda row: row["seconds_median_worker"]),
    "imbalance": (
        "the slowest worker's share beyond the median's",
        lambda row: row["seconds_slowest_worker"] - row["seconds_median_worker"],
    ),
    "waiting": (
        "until the last answer: other programs on the cores, deaths, the way back",
        lambda row: max(row["seconds_rollouts"] - row["seconds_ship"] - row["seconds_slowest_worker"], 0.0),
    ),
    "tell": ("gradient and step, in the coordinator", lambda row: row["seconds_tell"]),
}


@dataclass(frozen=True)
class TimesOptions:
    """Say where the time of a run's iterations went."""

    run: Positional[str]
    """The run's folder."""
    last: int = 100
    """Look at this many iterations, the newest."""
    json: bool = False
    """Print one JSON object."""


def main(options: TimesOptions) -> int:
    """Print a table or a JSON object."""
    if options.last < 1:
        raise UserError(f"--last must be at least 1, not {options.last}.")
    found = times(options.run, options.last)
    if options.json:
        print(json.dumps(found))
        return 0
    total = sum(found["seconds"].values())
    print(f"iterations {found['first']}-{found['last']} of {options.run}, {found['workers']} workers; means:")
    for phase, (words, _) in PHASES.items():
        seconds = found["seconds"][phase]
        print(f"  {phase:9}  {seconds * 1000:10,.1f} ms  {seconds / max(total, 1e-12):6.1%}  {words}")
    print(f"  {'together':9}  {total * 1000:10,.1f} ms          {found['steps_per_s']:,.0f} environment steps a second")
    print(f"messages: {found['bytes_out']:,} bytes to every worker, {found['bytes_back']:,} back from all of them")
    print(f"workers replaced: {found['workers_replaced']}")
    return 0


def times(run: str, last: int) -> dict[str, Any]:
    """The mean seconds of every phase over the newest iterations, and what travelled."""
    rows = read_metrics(RunFolder.open(run).metrics)[-last:]
    if not rows:
        raise UserError(f"{run} has no iteration yet: train on with twotower resume {run}")
    try:
        seconds = {phase: float(np.mean([value(row) for row in rows])) for phase, (_, value) in PHASES.items()}
        return {
            "first": rows[0]["iteration"],
            "last": rows[-1]["iteration"],
            "workers": rows[-1]["workers"],
            "seconds": seconds,
            "steps_per_s": float(np.mean([row["steps_per_s"] for row in rows])),
            "workers_replaced": sum(row["workers_replaced"] for row in rows),
            "bytes_out": rows[-1]["bytes_out"],
            "bytes_back": rows[-1]["bytes_back"],
        }
    except (KeyError, TypeError) as error:
        raise UserError(f"The metrics of {run} do not tell times: an older twotower wrote them.") from error

"""What searches cost on this machine: measured once on a grid of N and d, interpolated between."""

import json
import math
import os
from bisect import bisect_right
from functools import cache
from pathlib import Path
from typing import NamedTuple

from twotower.errors import UserError
from twotower.files.atomic import reason, write_atomically

SHIPPED = Path(__file__).parent / "costs.json"
KINDS = ("copy", "scan", "winners", "tree_build", "tree_query", "partition_build", "partition_query")
CALIBRATED = 0.001  # regret of the partitions


class Costs(NamedTuple):
    """Seconds by kind of work: tables (sizes, counts) over a grid.

    copy: laying latents out; scan: a query that scores all of them; winners: one direction's share of a pass over
    them; tree_build and tree_query: a box tree; partition_build and partition_query: partitions within CALIBRATED.
    """

    machine: str
    sizes: tuple[int, ...]  # d
    counts: tuple[int, ...]  # N
    seconds: dict[str, list[list[float]]]

    def __hash__(self) -> int:
        return id(self)

    def of(self, kind: str, count: int, size: int) -> float:
        """Seconds for N = count and d = size: linear in the logarithms, beyond the grid in proportion to N and d."""
        table = self.seconds[kind]
        row, across = _place(self.sizes, size)
        column, along = _place(self.counts, count)
        logs = [
            (1 - along) * math.log(table[r][column]) + along * math.log(table[r][column + 1]) for r in (row, row + 1)
        ]
        beyond = max(count / self.counts[-1], 1.0) * max(size / self.sizes[-1], 1.0)
        return math.exp((1 - across) * logs[0] + across * logs[1]) * beyond


def _place(grid: tuple[int, ...], value: int) -> tuple[int, float]:
    """The interval of the grid that holds a value, and how far along it is in logarithms; clamped to the grid."""
    at = min(max(bisect_right(grid, value) - 1, 0), len(grid) - 2)
    along = math.log(value / grid[at]) / math.log(grid[at + 1] / grid[at])
    return at, min(max(along, 0.0), 1.0)


def calibrated_path() -> Path:
    """Where this machine's measurements are kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "twotower" / "search-costs.json"


@cache
def machine_costs() -> Costs:
    """This machine's costs if it was calibrated, else the ones that come with the package."""
    path = calibrated_path()
    return read(path) if path.is_file() else shipped_costs()


@cache
def shipped_costs() -> Costs:
    """The costs that come with the package: the same on every machine, so that what follows from them is too."""
    return read(SHIPPED)


def read(path: Path) -> Costs:
    """Costs from a file."""
    try:
        costs = Costs(**json.loads(path.read_bytes()))
        shape = [[len(row) for row in costs.seconds[kind]] for kind in KINDS]
        values = [value for kind in KINDS for row in costs.seconds[kind] for value in row]
        if shape != [[len(costs.counts)] * len(costs.sizes)] * len(KINDS) or not all(0 < v < math.inf for v in values):
            raise ValueError("not a table of seconds")
    except OSError as error:
        raise UserError(f"Cannot read {path}: {reason(error)}.") from error
    except (ValueError, TypeError, KeyError) as error:
        raise UserError(
            f"{path} does not hold search costs of this version: remove it, or run: twotower bench search --calibrate"
        ) from error
    return costs._replace(sizes=tuple(costs.sizes), counts=tuple(costs.counts))


def write(costs: Costs, path: Path) -> None:
    """Keep costs in a file, made with its folder."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"Cannot make the folder {path.parent}: {reason(error)}.") from error
    write_atomically(path, (json.dumps(costs._asdict(), indent=1) + "\n").encode())
    machine_costs.cache_clear()

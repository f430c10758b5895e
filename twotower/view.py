"""What a user sees while training: a live view on a terminal, plain lines elsewhere."""

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, final

from twotower.config import TrainConfig

PLAIN_SECONDS = 2.0
BLOCKS = "▁▂▃▄▅▆▇█"


class View(ABC):
    """Shows the metrics row of every iteration; used as a context manager."""

    def __init__(self, config: TrainConfig) -> None:
        self.config = config
        self._first: tuple[float, float] | None = None
        self._returns: list[float] = []

    def __enter__(self) -> "View":
        return self

    def __exit__(self, *exception: object) -> None:
        return None

    @abstractmethod
    def show(self, row: dict[str, Any]) -> None:
        """Show one iteration."""

    def recall(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """What was measured before the run was resumed."""
        return None

    def seconds_left(self, done: float) -> float | None:
        """How long the rest of the budget takes at the pace since the first call."""
        now = time.monotonic()
        self._first = self._first or (now, done)
        paced = (done - self._first[1]) / max(now - self._first[0], 1e-9)
        return (1 - done) / paced if paced > 0 and done < 1 else None

    def done(self, row: dict[str, Any]) -> float:
        """The share of the budget that is spent."""
        shares = [row["iteration"] / self.config.iterations] if self.config.iterations else []
        shares += [row["steps"] / self.config.steps] if self.config.steps else []
        return min(max(shares, default=0.0), 1.0)


@final
class Silent(View):
    """Shows nothing."""

    def show(self, row: dict[str, Any]) -> None:
        return None


@final
class Plain(View):
    """A line every two seconds, for logs and pipes."""

    _shown = -PLAIN_SECONDS

    def show(self, row: dict[str, Any]) -> None:
        now, done = time.monotonic(), self.done(row)
        left = self.seconds_left(done)
        if now - self._shown < PLAIN_SECONDS and done < 1.0:
            return
        self._shown = now
        eta = f"  ETA {duration(left)}" if left else ""
        print(f"iteration {row['iteration']}{total(self.config)}  {summary(row)}{eta}", flush=True)


@final
class Live(View):
    """The curve so far, the latest figures, where the time goes and when it ends, redrawn four times a second."""

    def __enter__(self) -> "Live":
        from rich.live import Live as Screen

        self._started = time.monotonic()
        self._row: dict[str, Any] = {}
        self._ends: float | None = None
        self._screen = Screen(get_renderable=self._picture, refresh_per_second=4)
        self._screen.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._screen.stop()

    def recall(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self._returns = [value for row in rows if isinstance(value := row.get("return"), float)]

    def show(self, row: dict[str, Any]) -> None:
        left = self.seconds_left(self.done(row))
        self._ends = None if left is None else time.monotonic() + left
        self._returns.append(row["return"])
        self._row = row

    def _picture(self) -> Any:
        """What the terminal shows now."""
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        config, row, now = self.config, self._row, time.monotonic()
        head = Table.grid(padding=(0, 2), expand=True)
        for ratio in (None, 1, None):
            head.add_column(ratio=ratio, no_wrap=True)
        title = Text.assemble((config.task, "bold"), f"  {config.policy.kind}, seed {config.seed}")
        eta = "" if self._ends is None else f"  ETA {duration(max(self._ends - now, 0))}"
        clock = Text(f"{duration(now - self._started)}{eta}")
        head.add_row(title, ProgressBar(total=1.0, completed=self.done(row) if row else 0.0), clock)
        if not row:
            return Group(head, Text("compiling kernels and building environments …", style="dim"))
        width = max(self._screen.console.width - 30, 10)
        low, high = min(self._returns), max(self._returns)
        curve = Text.assemble(
            ("return  ", "dim"), f"{low:.1f} ", (sparkline(self._returns, width), "cyan"), f" {high:.1f}"
        )
        count = Text.assemble(("iteration ", "dim"), f"{row['iteration']}{total(config)}  ", summary(row))
        return Group(head, curve, count, Text.assemble(("time  ", "dim"), phases(row)))


def summary(row: dict[str, Any]) -> str:
    """The figures of one iteration on a line."""
    audit = ""
    if "search_regret" in row:
        audit = f"  regret {row['search_regret']:.2%} (worst {row['search_worst_regret']:.1%})"
    return (
        f"return {row['return']:.1f}  best {row['best']:.1f}  "
        f"population {row['population_mean']:.1f} ± {row['population_std']:.1f}  "
        f"{row['steps_per_s']:,.0f} env-steps/s{audit}"
    )


def phases(row: dict[str, Any]) -> str:
    """Where an iteration's time went: what is not spent in episodes is what the engine costs."""
    whole = max(row["seconds_ask"] + row["seconds_rollouts"] + row["seconds_tell"], 1e-9)
    parts = {
        "in episodes": row["seconds_median_worker"],
        "waiting for the slowest worker": row["seconds_slowest_worker"] - row["seconds_median_worker"],
        "messages": row["seconds_rollouts"] - row["seconds_slowest_worker"],
        "update": row["seconds_ask"] + row["seconds_tell"],
    }
    shares = (f"{100 * max(part, 0.0) / whole:.0f} % {name}" for name, part in parts.items())
    return f"{1000 * whole:,.0f} ms an iteration: {', '.join(shares)}"


def sparkline(values: Sequence[float], width: int) -> str:
    """A curve in one line of at most `width` characters, each the mean of its share of the values."""
    edges = [len(values) * k // min(width, len(values)) for k in range(min(width, len(values)) + 1)]
    means = [sum(values[a:b]) / (b - a) for a, b in pairwise(edges)]
    low, span = min(means), max(means) - min(means)
    return "".join(BLOCKS[round((mean - low) / span * (len(BLOCKS) - 1))] if span > 0 else BLOCKS[0] for mean in means)


def total(config: TrainConfig) -> str:
    """How many iterations are asked for, as `/100`."""
    return f"/{config.iterations}" if config.iterations else ""


def duration(seconds: float) -> str:
    """Seconds as h:mm:ss."""
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}"

"""What a user sees while training: a live view on a terminal, plain lines elsewhere."""

import time
from abc import ABC, abstractmethod
from typing import Any, final

from twotower.config import TrainConfig

PLAIN_SECONDS = 2.0


class View(ABC):
    """Shows the metrics row of every iteration; used as a context manager."""

    def __init__(self, config: TrainConfig) -> None:
        self.config = config

    def __enter__(self) -> "View":
        return self

    def __exit__(self, *exception: object) -> None:
        return None

    @abstractmethod
    def show(self, row: dict[str, Any]) -> None:
        """Show one iteration."""

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

    def __init__(self, config: TrainConfig) -> None:
        super().__init__(config)
        self._first: tuple[float, float] | None = None
        self._shown = -PLAIN_SECONDS

    def show(self, row: dict[str, Any]) -> None:
        now, done = time.monotonic(), self.done(row)
        self._first = self._first or (now, done)
        if now - self._shown < PLAIN_SECONDS and done < 1.0:
            return
        self._shown = now
        rate = (done - self._first[1]) / max(now - self._first[0], 1e-9)
        eta = f"  ETA {duration((1 - done) / rate)}" if rate > 0 and done < 1 else ""
        print(f"iteration {row['iteration']}{total(self.config)}  {summary(row)}{eta}", flush=True)


@final
class Live(View):
    """A progress bar with the latest figures under it."""

    def __enter__(self) -> "Live":
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        columns = (
            TextColumn(
                "[bold]{task.fields[task_name]}[/]  iteration {task.fields[iteration]}{task.fields[total_text]}"
            ),
            BarColumn(bar_width=None),
            TimeElapsedColumn(),
            TextColumn("ETA"),
            TimeRemainingColumn(),
        )
        self._progress = Progress(*columns, TextColumn("\n{task.fields[figures]}"), refresh_per_second=4)
        self._task = self._progress.add_task(
            "", total=1.0, task_name=self.config.task, iteration=0, total_text=total(self.config),
            figures="compiling kernels and building environments …",
        )  # fmt: skip
        self._progress.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._progress.stop()

    def show(self, row: dict[str, Any]) -> None:
        self._progress.update(self._task, completed=self.done(row), iteration=row["iteration"], figures=summary(row))


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


def total(config: TrainConfig) -> str:
    """How many iterations are asked for, as `/100`."""
    return f"/{config.iterations}" if config.iterations else ""


def duration(seconds: float) -> str:
    """Seconds as h:mm:ss."""
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}"

"""What a user sees while runs are carried out: how many are done, what is running, and how long it will take."""

import sys
import time
from collections.abc import Sequence

from twotower.experiments.costs import core_seconds
from twotower.experiments.folders import Kept
from twotower.experiments.plan import Planned
from twotower.view import duration

PLAIN_SECONDS = 10.0


class Progress:
    """A line that is rewritten on a terminal, and a new line every ten seconds elsewhere."""

    def __init__(self, quiet: bool = False) -> None:
        self._terminal = sys.stderr.isatty()
        self._quiet = quiet
        self._shown = 0.0

    def begin(self, total: int, pending: Sequence[Planned], kept: Kept) -> None:
        """Say what there is to do."""
        self._kept, self._total = kept, total
        self._left = {run.name: run for run in pending}
        self._shares = {run.name: kept.share_done(run) for run in pending}
        self._owed = sum(core_seconds(run) * (1 - self._shares[run.name]) for run in pending)
        self._began = time.monotonic()
        ready = total - len(pending)
        if pending:
            self._say(f"{total} runs, {ready} of them finished before; run folders in {kept.folders}")

    def finished(self, run: Planned, failed: str | None) -> None:
        """One run ended."""
        self._left.pop(run.name, None)
        if failed:
            self._say(f"{run.name} failed: {failed}")

    def update(self, running: Sequence[Planned]) -> None:
        """Show where the runs are."""
        now = time.monotonic()
        if not running or now - self._shown < (0.5 if self._terminal else PLAIN_SECONDS):
            return
        self._shown = now
        for run in running:
            self._shares[run.name] = self._kept.share_done(run)
        left = sum(core_seconds(run) * (1 - self._shares[name]) for name, run in self._left.items())
        paid = self._owed - left
        # The costs are estimates; how fast they go down here and now corrects them.
        eta = f"  ETA {duration((now - self._began) * left / paid)}" if paid > 0.01 * self._owed else ""
        where = ", ".join(f"{_short(run)} {self._shares[run.name]:.0%}" for run in running)
        line = f"{self._total - len(self._left)}/{self._total} runs  {where}{eta}"
        if self._terminal and not self._quiet:
            width = _width()
            print(f"\r{line[: width - 1]:<{width - 1}}", end="", file=sys.stderr, flush=True)
        else:
            self._say(line)

    def end(self) -> None:
        """All runs have ended."""
        if self._terminal and not self._quiet and self._shown:
            print(file=sys.stderr)

    def _say(self, line: str) -> None:
        if not self._quiet:
            start = "\r" if self._terminal else ""
            print(f"{start}{line}", file=sys.stderr, flush=True)


def _short(run: Planned) -> str:
    task, kind, variant = run.cell
    return " ".join(word for word in (task, kind, variant, f"seed {run.config.seed}") if word)


def _width() -> int:
    import shutil

    return shutil.get_terminal_size().columns

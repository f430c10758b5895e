"""The processes that train a study's runs, kept from rung to rung."""

import queue
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from twotower.config import TrainConfig
from twotower.experiments.queue import Runner
from twotower.runs import RunFolder
from twotower.tuning.progress import Progress


class Interrupted(Exception):
    """The user stopped; what is done is kept."""


def run_folder(run: TrainConfig) -> RunFolder:
    """Where a run is."""
    return RunFolder(Path(str(run.run_dir)))


class Runners:
    """Processes that train, kept from rung to rung."""

    def __init__(self, count: int) -> None:
        self._events: queue.Queue[tuple[Runner, dict[str, Any]]] = queue.Queue()
        self._count = count
        self._idle: list[Runner] = []
        self._busy: dict[Runner, TrainConfig] = {}

    def carry_out(self, runs: Sequence[TrainConfig], progress: Progress) -> dict[str | None, str]:
        """Train all of them; the reasons of those that failed, by folder."""
        waiting, failures = list(runs), {}
        while waiting or self._busy:
            while waiting and len(self._busy) < self._count:
                runner = self._idle.pop() if self._idle else Runner(self._events)
                run = waiting.pop(0)
                if run_folder(run).config.exists():
                    run_folder(run).write_config(run)  # the next rung is a larger budget
                self._busy[runner] = run
                runner.start(run)
            try:
                runner, answer = self._events.get(timeout=0.5)
            except queue.Empty:
                progress.update(list(self._busy.values()))
                continue
            run = self._busy.pop(runner)
            if answer.get("stopped"):
                raise Interrupted
            if "failed" in answer:
                failures[run.run_dir] = answer["failed"]
            if runner.alive:
                self._idle.append(runner)
        return failures

    def close(self) -> None:
        """Let what runs stop at its next iteration."""
        for runner in (*self._idle, *self._busy):
            runner.close()


@contextmanager
def open_runners(count: int) -> Iterator[Runners]:
    """Processes for at most `count` runs at a time."""
    runners = Runners(count)
    try:
        yield runners
    finally:
        runners.close()

"""Carries out runs side by side, one worker each, and those that are timed one after another, alone."""

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from types import FrameType
from typing import Any

from twotower.config import TrainConfig, to_dict
from twotower.experiments.costs import core_seconds
from twotower.experiments.folders import Kept
from twotower.experiments.plan import Planned
from twotower.experiments.progress import Progress

GRACE_SECONDS = 60.0


class Interrupted(Exception):
    """The user asked to stop; what is done is kept."""


def carry_out(runs: Sequence[Planned], kept: Kept, workers: int, progress: Progress) -> dict[str, str]:
    """Train what is not finished; the reasons of those that failed, by name."""
    unique = {run.name: run for run in runs}
    pending = [run for run in unique.values() if not kept.is_finished(run)]
    pending.sort(key=core_seconds)  # cheap ones first, so that results come early; equal ones in the plan's order
    progress.begin(len(unique), pending, kept)
    together = [run for run in pending if not run.timed]
    alone = [run for run in pending if run.timed]
    failures: dict[str, str] = {}
    with _stopping() as stop:
        _carry_out(together, kept, workers, 1, progress, failures, stop)
        _carry_out(alone, kept, 1, workers, progress, failures, stop)
    progress.end()
    return failures


def _carry_out(
    runs: list[Planned],
    kept: Kept,
    abreast: int,
    workers: int,
    progress: Progress,
    failures: dict[str, str],
    stop: threading.Event,
) -> None:
    """Keep `abreast` runs going until none is left."""
    waiting = list(runs)
    events: queue.Queue[tuple[Runner, dict[str, Any]]] = queue.Queue()
    idle = [Runner(events) for _ in range(min(abreast, len(waiting)))]
    busy: dict[Runner, Planned] = {}
    try:
        while waiting or busy:
            while waiting and idle and not stop.is_set():
                share = max(abreast // (len(waiting) + len(busy)), 1)  # the last runs share what is free
                run, runner = waiting.pop(0), idle.pop()
                kept.extend_shorter(run)
                busy[runner] = run
                runner.start(_placed(run, kept, max(workers, share)))
            progress.update(list(busy.values()))
            if stop.is_set():
                raise Interrupted
            with suppress(queue.Empty):
                runner, answer = events.get(timeout=0.5)
                run = busy.pop(runner)
                if answer.get("stopped"):
                    raise Interrupted
                if "failed" in answer:
                    failures[run.name] = answer["failed"]
                progress.finished(run, answer.get("failed"))
                idle.append(runner if runner.alive else Runner(events))
    finally:
        for runner in (*idle, *busy):
            runner.close()


def _placed(run: Planned, kept: Kept, workers: int) -> TrainConfig:
    executor = "serial" if workers == 1 else "processes"
    return replace(kept.config(run), workers=workers, executor=executor)


class Runner:
    """A process that trains, as this one sees it."""

    def __init__(self, events: "queue.Queue[tuple[Runner, dict[str, Any]]]") -> None:
        self._events = events
        self._words = tempfile.TemporaryFile()
        command = [sys.executable, "-m", "twotower.experiments.runner"]
        # In this process group, so that Ctrl-C and whoever pauses the group reach it, too.
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._words, text=True
        )
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    @property
    def alive(self) -> bool:
        """Whether it can take another run."""
        return self._process.poll() is None

    def start(self, config: TrainConfig) -> None:
        """Train a run; how it ends comes as an event."""
        assert self._process.stdin is not None
        with suppress(OSError):  # one that has died says so by an event
            self._process.stdin.write(json.dumps(to_dict(config)) + "\n")
            self._process.stdin.flush()

    def close(self) -> None:
        """Let a run stop at its next iteration with a checkpoint, and wait for that."""
        assert self._process.stdin is not None and self._process.stdout is not None
        with suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._listener.join()  # which may be reading the words of one that was killed
        self._process.stdout.close()
        self._words.close()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._events.put((self, json.loads(line)))
        code = self._process.wait()
        if code:
            self._events.put((self, {"failed": self._last_words(code)}))

    def _last_words(self, code: int) -> str:
        self._words.seek(0)
        said = self._words.read().decode(errors="replace").strip().splitlines()
        how = f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"
        return f"its process {how}" + (f" ({said[-1]})" if said else "")


@contextmanager
def _stopping() -> Iterator[threading.Event]:
    """Let Ctrl-C and SIGTERM stop all runs at their next iteration; a second Ctrl-C interrupts at once."""
    stop = threading.Event()

    def handle(number: int, frame: FrameType | None) -> None:
        if stop.is_set() and number == signal.SIGINT:
            raise KeyboardInterrupt
        stop.set()
        with suppress(OSError):
            os.write(2, b"Stopping after these iterations; Ctrl-C again stops at once.\n")

    previous = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)

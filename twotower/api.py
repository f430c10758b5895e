"""Train, resume and evaluate: what the command line does, for Python."""

import dataclasses
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import FrameType
from typing import Any

from twotower.analysis.curve import Curve, draw
from twotower.config import Config, TrainConfig, from_dict, nearest
from twotower.errors import UserError
from twotower.logs import check_logs, open_logs
from twotower.recipes import budgeted
from twotower.runs import RunFolder, read_metrics
from twotower.training import TrainedPolicy, Trainer, build, load, task_config
from twotower.view import Live, Plain, Silent, View


@dataclass(frozen=True)
class Run:
    """A run on disk: what it was asked, what it measured, what it learnt."""

    folder: Path
    stopped_by: int | None = None
    """The signal that stopped training before its budget was spent."""
    trained: int = 0
    """Iterations that this call trained."""

    @cached_property
    def policy(self) -> TrainedPolicy:
        """The trained policy."""
        return load(self.folder)

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """One row an iteration."""
        return read_metrics(RunFolder(self.folder).metrics)

    @property
    def config(self) -> TrainConfig:
        """The configuration of the run."""
        return RunFolder(self.folder).read_config()


def train(task: str | TrainConfig, *, progress: bool = True, **options: Any) -> Run:
    """Train a policy; `options` are the fields of TrainConfig, with dictionaries for its parts.

    For example train("hopper", preset="fast", seed=3, workers=2, policy={"search": "corner"}, strategy={"lazy": 5}).
    """
    if not isinstance(task, TrainConfig):
        policy = options.get("policy", {})
        kind = policy.get("kind") if isinstance(policy, dict) else getattr(policy, "kind", None)
        task = task_config(task, kind, options.get("preset", "paper"))
    config = budgeted(merged(task, options))
    check_logs(config)
    experiment = build(config)  # before the folder exists: what is refused leaves nothing behind
    folder = RunFolder.create(config)
    with folder.locked():
        return _run(Trainer(experiment, folder), folder, progress)


def resume(path: str | Path, *, progress: bool = True, **options: Any) -> Run:
    """Go on from a run's last checkpoint, with the bits it would have had; a larger budget extends it."""
    allowed = (
        "iterations", "steps", "workers", "executor", "ray", "worker_timeout", "plain", "evaluation_episodes",
        "checkpoint_seconds",
    )  # fmt: skip
    for name in options:
        if name not in allowed:
            raise UserError(f"resume cannot change {name!r}: it would be another run{nearest(name, allowed)}.")
    folder = RunFolder.open(path)
    with folder.locked():  # before reading: another process may be writing
        config = merged(folder.read_config(), options)
        check_logs(config)
        trainer = Trainer(build(config), folder)
        if options:
            folder.write_config(config)
        return _run(trainer, folder, progress)


def merged(config: Config, options: Any, where: str = "options") -> Config:
    """A configuration with some fields replaced; nested parts take dictionaries, or whole configurations."""
    options = dataclasses.asdict(options) if dataclasses.is_dataclass(options) else options  # pyright: ignore[reportArgumentType]
    if not isinstance(options, dict):
        raise UserError(f"{where} must be a dictionary or a configuration, not {options!r}.")
    plain = dataclasses.asdict(config)  # pyright: ignore[reportArgumentType]
    for name, value in options.items():
        part = next((part for part, fields in plain.items() if isinstance(fields, dict) and name in fields), None)
        if name not in plain and part:
            raise UserError(f"{where} has no field {name!r}, but {part} has: give {part}={{{name!r}: {value!r}}}.")
        if name in plain and dataclasses.is_dataclass(getattr(config, name)):
            value = merged(getattr(config, name), value, f"{where}.{name}")
        plain[name] = dataclasses.asdict(value) if dataclasses.is_dataclass(value) else value  # pyright: ignore[reportArgumentType]
    return from_dict(type(config), plain, where)


def _run(trainer: Trainer, folder: RunFolder, progress: bool) -> Run:
    """Train to the end of the budget, evaluate, draw the curve."""
    config, done = trainer.experiment.config, trainer.checkpoint.iteration
    rows = [row for row in read_metrics(folder.metrics) if row["iteration"] <= done] if done else []
    with open_logs(config, folder, rows) as logs:
        with _stopping(trainer) as stopped, Curve(folder) as curve, _view(config, progress) as view:
            view.recall(rows)

            def report(row: dict[str, Any]) -> None:
                logs.record(row)
                view.show(row)
                curve.refresh()

            trainer.run(report)
        draw(folder)
        trained = trainer.checkpoint.iteration - done
        if stopped:
            return Run(folder.path, stopped[0], trained)
        file = trainer.policy_file()
        evaluation = TrainedPolicy(file).evaluate(config.evaluation_episodes)
        dataclasses.replace(file, evaluation=evaluation).save(folder.policy)
        logs.evaluated(evaluation, file.iteration)
    return Run(folder.path, trained=trained)


@contextmanager
def _stopping(trainer: Trainer) -> Iterator[list[int]]:
    """Let Ctrl-C and SIGTERM stop training at the next iteration; a second Ctrl-C interrupts at once."""
    received: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        if received and number == signal.SIGINT:
            raise KeyboardInterrupt
        received.append(number)
        trainer.stop_requested = True
        with suppress(OSError):  # not print, which the signal may have interrupted
            os.write(2, b"Stopping after this iteration; Ctrl-C again stops at once.\n")

    if threading.current_thread() is not threading.main_thread():
        yield received
        return
    previous = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _view(config: TrainConfig, progress: bool) -> View:
    if not progress:
        return Silent(config)
    return Live(config) if sys.stdout.isatty() and not config.plain else Plain(config)

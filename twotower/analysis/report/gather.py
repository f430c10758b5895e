"""From folders, whole or torn, to what a report can show of them."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from twotower.config import TrainConfig
from twotower.errors import UserError
from twotower.runs import PolicyFile, RunFolder, read_metrics

DEPTH = 4  # folders of folders of runs
RUN_FILES = ("config.json", "metrics.jsonl", "checkpoint.safetensors", "policy.safetensors")
VIDEOS = ("video.mp4", "video.gif")


@dataclass(frozen=True)
class RunRecord:
    """What one run folder holds."""

    path: Path
    config: TrainConfig
    rows: list[dict[str, Any]] = field(repr=False)
    file: PolicyFile | None
    notes: tuple[str, ...] = ()
    """What is missing or could not be read."""

    @property
    def score(self) -> float | None:
        """The mean return of the recorded evaluation; None before training has ended."""
        return None if self.file is None or self.file.evaluation is None else self.file.evaluation.mean

    @property
    def video(self) -> Path | None:
        """A video in the folder."""
        return next((self.path / name for name in VIDEOS if (self.path / name).is_file()), None)

    def column(self, name: str) -> np.ndarray:  # (rows,)
        """A figure of every iteration; NaN where a row has none."""
        values = [row.get(name) for row in self.rows]
        known = [type(value) in (int, float) for value in values]
        return np.array([value if ok else np.nan for value, ok in zip(values, known, strict=True)], np.float64)


class LeftOut(NamedTuple):
    """A folder the report cannot show, and why."""

    path: Path
    reason: str


class Gathered(NamedTuple):
    """All runs that were asked for."""

    runs: list[RunRecord]
    left_out: list[LeftOut]


def gather(paths: Sequence[str | Path]) -> Gathered:
    """The runs of run folders, or of folders of runs; what cannot be read is left out, with the reason."""
    runs: dict[Path, RunRecord] = {}
    left_out: list[LeftOut] = []
    for path in map(Path, paths):
        if not os.path.exists(path):
            raise UserError(f"There is no run folder {path}: start a run with twotower train.")
        folders = list(_folders(path))
        if not folders:
            raise UserError(f"There are no runs in {path}: start one with twotower train.")
        for folder in folders:
            if folder.resolve() in runs or any(folder == out.path for out in left_out):
                continue
            try:
                runs[folder.resolve()] = read(folder)
            except UserError as error:
                left_out.append(LeftOut(folder, str(error)))
    return Gathered(list(runs.values()), left_out)


def read(path: Path) -> RunRecord:
    """One run; a run needs its configuration, and everything else may be missing."""
    folder = RunFolder.open(path)
    config = folder.read_config()
    notes, rows, file = [], [], None
    try:
        rows = read_metrics(folder.metrics)
    except UserError as error:
        notes.append(str(error))
    if not rows and not notes:
        notes.append("No iteration is recorded yet.")
    try:
        file = PolicyFile.load(folder.policy) if folder.policy.exists() else None
    except UserError as error:
        notes.append(str(error))
    if rows and not notes and (file is None or file.evaluation is None):
        notes.append(f"Training has not ended: no evaluation yet (twotower resume {path}).")
    return RunRecord(path, config, rows, file, tuple(notes))


def _folders(path: Path, depth: int = DEPTH) -> Iterator[Path]:
    """The run folders at and below a path, in the order of their names."""
    if any((path / name).exists() for name in RUN_FILES):
        yield path
    elif depth and path.is_dir():
        try:
            below = sorted(entry for entry in path.iterdir() if entry.is_dir() and not entry.name.startswith("."))
        except OSError:
            return
        for folder in below:
            yield from _folders(folder, depth - 1)

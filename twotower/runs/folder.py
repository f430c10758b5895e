"""The folder of a run: where its files are, and that only one process trains in it."""

import contextlib
import fcntl
import json
import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from twotower.config import TrainConfig, from_dict, to_dict
from twotower.errors import UserError
from twotower.files.atomic import reason, remove_leftovers, write_atomically
from twotower.runs.policy_file import PolicyFile


@dataclass(frozen=True)
class RunFolder:
    """The files of one run."""

    path: Path

    @property
    def config(self) -> Path:
        """What was asked for."""
        return self.path / "config.json"

    @property
    def metrics(self) -> Path:
        """One line an iteration."""
        return self.path / "metrics.jsonl"

    @property
    def checkpoint(self) -> Path:
        """Where `resume` goes on."""
        return self.path / "checkpoint.safetensors"

    @property
    def policy(self) -> Path:
        """The trained policy."""
        return self.path / "policy.safetensors"

    @property
    def curve(self) -> Path:
        """The picture of the learning curve."""
        return self.path / "curve.png"

    @classmethod
    def create(cls, config: TrainConfig) -> "RunFolder":
        """Make the folder of a new run, with its config.json."""
        path = _make_named(config.run_dir) if config.run_dir else make_dated(config.task)
        folder = cls(path)
        folder.write_config(config)
        return folder

    @classmethod
    def open(cls, path: str | Path) -> "RunFolder":
        """An existing run."""
        folder = cls(Path(path))
        try:
            is_run = folder.config.is_file()
            if not folder.path.exists():
                raise UserError(f"There is no run folder {path}: start a run with twotower train.")
        except OSError as error:
            raise UserError(f"Cannot read {path}: {reason(error)}.") from error
        if not is_run:
            raise UserError(f"{path} is not a run folder (it has no config.json).")
        return folder

    def write_config(self, config: TrainConfig) -> None:
        """Write config.json."""
        write_atomically(self.config, (json.dumps(to_dict(config), indent=2) + "\n").encode())

    def read_config(self) -> TrainConfig:
        """Read config.json."""
        try:
            data = json.loads(self.config.read_bytes())
        except OSError as error:
            raise UserError(f"Cannot read {self.config}: {reason(error)}.") from error
        except (ValueError, RecursionError) as error:
            raise UserError(f"{self.config} is not JSON: put the original back, or train anew.") from error
        return from_dict(TrainConfig, data, str(self.config))

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from training here, even by a second `resume`; killed holders let go."""
        path = self.path / ".lock"
        try:
            file = open(path, "ab")
        except OSError as error:
            raise UserError(f"Cannot write {path}: {reason(error)}.") from error
        with file:
            try:
                # Not flock: forked workers that outlive a killed trainer would go on holding it.
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except (BlockingIOError, PermissionError) as error:
                raise UserError(f"Another process is training in {self.path}: wait for it, or stop it.") from error
            except OSError:
                pass  # A file system without locks: train unguarded.
            remove_leftovers(self.path)
            yield


def load_policy_source(path: str | Path) -> PolicyFile:
    """The policy of a run folder, or of a policy file."""
    if not os.path.isdir(path):
        return PolicyFile.load(Path(path))
    folder = RunFolder.open(path)
    if not os.path.exists(folder.policy):
        raise UserError(f"{path} has no policy yet: train on with twotower resume {path}")
    return PolicyFile.load(folder.policy)


def _make_named(name: str) -> Path:
    """A folder the user named: new, or there but without a run."""
    path = Path(name)
    try:
        path.mkdir(parents=True, exist_ok=True)
        taken = any((path / file).exists() for file in ("config.json", "metrics.jsonl", "checkpoint.safetensors"))
    except OSError as error:
        raise UserError(f"Cannot make the run folder {path}: {reason(error)}.") from error
    if taken:
        raise UserError(f"{path} already holds a run: resume it with: twotower resume {path}")
    return path


def make_dated(task: str) -> Path:
    """The first free folder among runs/TASK-DATE, runs/TASK-DATE-2, …"""
    runs = Path("runs")
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", task).strip(".-")[:100] or "run"
    dated = f"{stem}-{time.strftime('%Y%m%d-%H%M%S')}"
    try:
        runs.mkdir(exist_ok=True)
        path, number = runs / dated, 1
        while not _make(path):
            number += 1
            path = runs / f"{dated}-{number}"
        return path
    except OSError as error:
        raise UserError(f"Cannot make a run folder in {runs.absolute()}: {reason(error)}.") from error


def _make(path: Path) -> bool:
    """Make a folder; False if the name is taken, even by a process that was faster."""
    try:
        path.mkdir()
        return True
    except FileExistsError:
        return False

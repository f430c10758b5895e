"""The folders in which runs are kept from one command to the next, and what finished ones tell."""

import json
import os
import shutil
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from twotower.config import TrainConfig
from twotower.errors import UserError
from twotower.experiments.plan import Planned, budget_name
from twotower.files.atomic import reason
from twotower.runs import PolicyFile, RunFolder, read_metrics


@dataclass(frozen=True)
class Finished:
    """A run that reached its budget and was evaluated."""

    planned: Planned
    folder: RunFolder
    policy: PolicyFile

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """One row an iteration."""
        return read_metrics(self.folder.metrics)

    @property
    def seed(self) -> int:
        """The run's seed; runs of one seed are pairs."""
        return self.policy.config.seed

    @property
    def iterations(self) -> int:
        """How long it trained, which may be shorter than planned."""
        return self.policy.iteration

    @property
    def cut(self) -> bool:
        """Whether it is shorter than the paper's."""
        wanted = self.planned.config.iterations
        return self.planned.short or (wanted is not None and self.iterations < wanted)

    @property
    def returns(self) -> np.ndarray:  # (iterations,)
        """The return of θ_k in its one evaluation episode, iteration by iteration, as the paper measures."""
        return np.array([row["return"] for row in self.rows], dtype=np.float64)

    @property
    def evaluation(self) -> float:
        """The mean return of fresh episodes of the final policy."""
        assert self.policy.evaluation is not None
        return self.policy.evaluation.mean


def config_in(runs: Path, planned: Planned) -> TrainConfig:
    """The configuration of a run with its folder under `runs`."""
    return replace(planned.config, run_dir=str(runs / planned.name))


def is_finished(path: Path, config: TrainConfig) -> bool:
    """Whether a folder holds the run to the end of its budget, evaluated."""
    return _finished_policy(path, config) is not None


def finished(runs: Path, planned: Planned) -> Finished | None:
    """The finished run, or else the longest finished one that is the same but for a smaller budget."""
    path = runs / planned.name
    policy = _finished_policy(path, planned.config)
    if policy is None and not planned.timed:
        for path, config in _shorter(runs, planned):
            policy = _finished_policy(path, config)
            if policy is not None:
                break
    return None if policy is None else Finished(planned, RunFolder(path), policy)


def extend_shorter(runs: Path, planned: Planned) -> None:
    """Begin a run where the longest one that is the same but for its budget ended, by copying that."""
    path = runs / planned.name
    found = [] if planned.timed or path.exists() else _shorter(runs, planned)
    if not found:
        return
    source, aside = found[0][0], runs / f".{planned.name}-{uuid4().hex}"
    try:
        aside.mkdir()
        for name in ("checkpoint.safetensors", "metrics.jsonl"):
            shutil.copyfile(source / name, aside / name)
        RunFolder(aside).write_config(config_in(runs, planned))
        os.rename(aside, path)
    except OSError as error:
        raise UserError(f"Cannot copy {source} to {path}: {reason(error)}.") from error
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def share_done(path: Path, config: TrainConfig) -> float:
    """The share of its budget that a run has spent, from the last line of its metrics."""
    try:
        with open(path / "metrics.jsonl", "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 4096))
            row = json.loads(file.read().split(b"\n")[-2])
    except (OSError, ValueError, IndexError):
        return 0.0
    shares = [row["iteration"] / config.iterations] if config.iterations else []
    shares += [row["steps"] / config.steps] if config.steps else []
    return min(max(shares, default=0.0), 1.0)


def _finished_policy(path: Path, config: TrainConfig) -> PolicyFile | None:
    file = path / "policy.safetensors"
    if not file.exists():
        return None
    policy = PolicyFile.load(file)
    spent = (config.iterations is not None and policy.iteration >= config.iterations) or (
        config.steps is not None and policy.steps >= config.steps
    )
    return policy if spent and policy.evaluation is not None else None


def _shorter(runs: Path, planned: Planned) -> list[tuple[Path, TrainConfig]]:
    """Finished runs in iterations that are the same but for a smaller budget, the longest first."""
    config = planned.config
    if config.iterations is None or config.steps is not None or not runs.is_dir():
        return []
    found = []
    for path in runs.glob(f"{planned.stem}-*it"):
        number = path.name.removeprefix(f"{planned.stem}-").removesuffix("it")
        if number.isdecimal() and int(number) < config.iterations:
            found.append((int(number), path))
    shorter = [(path, replace(config, iterations=number)) for number, path in sorted(found, reverse=True)]
    assert all(path.name.endswith(budget_name(config)) for path, config in shorter)
    return [(path, config) for path, config in shorter if is_finished(path, config)]

"""Where runs are kept from one command to the next: folders to go on from, and records of those that finished."""

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import uuid4

from twotower.config import TrainConfig
from twotower.errors import UserError
from twotower.experiments import records
from twotower.experiments.plan import Planned, budget_name
from twotower.experiments.records import Finished, is_spent
from twotower.files.atomic import reason
from twotower.runs import PolicyFile, RunFolder


@dataclass(frozen=True)
class Kept:
    """Both places; a run's folder and its record have the run's name."""

    folders: Path
    records: Path

    def config(self, planned: Planned) -> TrainConfig:
        """The configuration of a run with its folder here."""
        return replace(planned.config, run_dir=str(self.folders / planned.name))

    def is_finished(self, planned: Planned) -> bool:
        """Whether a run was trained to the end of its budget and evaluated, here or wherever its record is from."""
        recorded = records.read(self._record(planned.name), planned, planned.config)
        return recorded is not None or _policy(self.folders / planned.name, planned.config) is not None

    def finished(self, planned: Planned, command: str) -> Finished | None:
        """The finished run, or else the longest finished one that is the same but for a smaller budget.

        What is concluded from is the record, which is written now where a folder has none yet.
        """
        shorter = () if planned.timed else self._shorter(planned)
        for name, config in ((planned.name, planned.config), *shorter):
            policy = None
            if not self._record(name).exists() and (policy := _policy(self.folders / name, config)) is not None:
                records.write(self._record(name), RunFolder(self.folders / name), policy, command)
            found = records.read(self._record(name), planned, config)
            if found is not None:
                return found
        return None

    def extend_shorter(self, planned: Planned) -> None:
        """Begin a run where the longest one that is the same but for its budget ended, by copying its folder."""
        path = self.folders / planned.name
        if planned.timed or path.exists():
            return
        found = (self.folders / name for name, config in self._shorter(planned) if _policy(self.folders / name, config))
        source, aside = next(found, None), self.folders / f".{planned.name}-{uuid4().hex}"
        if source is None:
            return
        try:
            aside.mkdir()
            for name in ("checkpoint.safetensors", "metrics.jsonl"):
                shutil.copyfile(source / name, aside / name)
            RunFolder(aside).write_config(self.config(planned))
            os.rename(aside, path)
        except OSError as error:
            raise UserError(f"Cannot copy {source} to {path}: {reason(error)}.") from error
        finally:
            shutil.rmtree(aside, ignore_errors=True)

    def share_done(self, planned: Planned) -> float:
        """The share of its budget that a run has spent, by its folder."""
        return share_done(self.folders / planned.name, planned.config)

    def _record(self, name: str) -> Path:
        return self.records / f"{name}.json"

    def _shorter(self, planned: Planned) -> Iterator[tuple[str, TrainConfig]]:
        """Names and configurations of runs in iterations that differ in a smaller budget alone, the longest first."""
        config = planned.config
        if config.iterations is None or config.steps is not None:
            return
        paths = [*self.folders.glob(f"{planned.stem}-*it"), *self.records.glob(f"{planned.stem}-*it.json")]
        budgets = {
            path.name.removeprefix(f"{planned.stem}-").removesuffix(".json").removesuffix("it") for path in paths
        }
        for number in sorted((int(budget) for budget in budgets if budget.isdecimal()), reverse=True):
            if number < config.iterations:
                smaller = replace(config, iterations=number)
                yield f"{planned.stem}-{budget_name(smaller)}", smaller


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


def _policy(path: Path, config: TrainConfig) -> PolicyFile | None:
    """The policy in a folder whose run had all of its budget and was evaluated."""
    file = path / "policy.safetensors"
    policy = PolicyFile.load(file) if file.exists() else None
    return policy if policy is not None and is_spent(policy, config) else None

"""The record of a finished run: one small file beside the results, which outlives the run's folder."""

import json
import time
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from twotower.config import TrainConfig
from twotower.errors import UserError
from twotower.experiments.plan import Planned, configuration_hash
from twotower.files.atomic import reason, write_atomically
from twotower.runs import PolicyFile, RunFolder, read_metrics

COLUMNS = ("steps", "seconds", "return", "saturation")


@dataclass(frozen=True)
class Finished:
    """A run that reached its budget and was evaluated."""

    planned: Planned
    name: str
    """Its record's name: not the plan's where it is shorter than planned."""
    policy: PolicyFile
    columns: dict[str, list[float | None]]
    """Of the metrics, one value an iteration."""

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """One row an iteration."""
        return [dict(zip(self.columns, row, strict=True)) for row in zip(*self.columns.values(), strict=True)]

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
        return np.array(self.columns["return"], dtype=np.float64)

    @property
    def evaluation(self) -> float:
        """The mean return of fresh episodes of the final policy."""
        assert self.policy.evaluation is not None
        return self.policy.evaluation.mean


def is_spent(policy: PolicyFile, config: TrainConfig) -> bool:
    """Whether a policy has had all of a budget, and was evaluated."""
    spent = (config.iterations is not None and policy.iteration >= config.iterations) or (
        config.steps is not None and policy.steps >= config.steps
    )
    return spent and policy.evaluation is not None


def write(path: Path, folder: RunFolder, policy: PolicyFile, command: str) -> None:
    """Write down all of a finished run that its results may ask for; what its search learnt from is left out."""
    rows = read_metrics(folder.metrics)
    tensors, facts = policy.parts()
    facts["config"]["run_dir"] = None  # a path of this machine
    record = {
        "name": path.stem,
        "command": command,
        "date": time.strftime("%Y-%m-%d"),
        "policy": facts,
        "arrays": {name: array.tolist() for name, array in tensors.items() if name != "search_queries"},
        **{name: [rounded(row.get(name)) for row in rows] for name in COLUMNS},
    }
    lines = (f"{json.dumps(key)}:{_compact(value)}" for key, value in record.items())
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"Cannot make the folder {path.parent}: {reason(error)}.") from error
    write_atomically(path, ("{" + ",\n".join(lines) + "}\n").encode())


def read(path: Path, planned: Planned, config: TrainConfig) -> Finished | None:
    """The record of a run of this configuration, the planned one's but for its budget; None where there is none."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UserError(f"Cannot read {path}: {reason(error)}.") from error
    try:
        return _parsed(json.loads(data), path, planned, config)
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise UserError(
            f"{path} is damaged, or not the record that its name says: delete it, or put the original back."
        ) from error


def _parsed(record: Any, path: Path, planned: Planned, config: TrainConfig) -> Finished:
    columns = {name: list(record[name]) for name in COLUMNS}
    numbers = all(type(value) in (int, float, type(None)) for column in columns.values() for value in column)
    arrays = {name: np.array(array, dtype=np.float64) for name, array in record["arrays"].items()}
    policy = PolicyFile.of_parts(arrays, record["policy"], path)
    whole = numbers and all(len(column) == policy.iteration > 0 for column in columns.values())
    found = replace(policy.config, candidates=config.candidates)  # whose number may have followed a schedule
    same = found.seed == config.seed and configuration_hash(found) == configuration_hash(config)
    if not (whole and same and is_spent(policy, config) and record["name"] == path.stem):
        raise ValueError
    return Finished(planned, path.stem, policy, columns)


def rounded(value: float | None) -> float | None:
    """Seven digits: more than any episode's return is worth, and half the size."""
    return value if value is None or isinstance(value, int) else float(f"{value:.7g}")


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)

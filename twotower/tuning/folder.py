"""The folder of a study: what was asked, and the best of it as a command and a configuration."""

import json
import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from twotower.config import TrainConfig, from_dict, to_dict
from twotower.errors import UserError
from twotower.files.atomic import reason, write_atomically
from twotower.recipes import task_config
from twotower.runs.folder import make_dated
from twotower.training import build
from twotower.tuning.config import TuneConfig
from twotower.tuning.space import applied
from twotower.tuning.study import Study, Trial


def open_study(config: TuneConfig) -> Path:
    """The folder of a study: a new one, or the one named, if it is of this configuration."""
    build(config.train_config())  # what is refused leaves nothing behind
    folder = Path(config.run_dir) if config.run_dir else make_dated(f"tune-{config.task}")
    path = folder / "study.json"
    if path.exists():
        before = read_study(folder)
        same = {name: getattr(config, name) for name in ("trials", "workers", "plain", "run_dir")}
        if replace(before, **same) != config:
            raise UserError(f"{folder} holds another study: go on with it by twotower tune {folder}, or name another.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"Cannot make the folder {folder}: {reason(error)}.") from error
    write_atomically(path, (json.dumps(to_dict(config), indent=2) + "\n").encode())
    return folder


def read_study(folder: Path) -> TuneConfig:
    """What a study was asked."""
    path = folder / "study.json"
    try:
        return from_dict(TuneConfig, json.loads(path.read_bytes()), str(path))
    except OSError as error:
        raise UserError(f"Cannot read {path}: {reason(error)}.") from error
    except ValueError as error:
        raise UserError(f"{path} is not JSON: put the original back, or start another study.") from error


@dataclass(frozen=True)
class Best:
    """What a study found."""

    trial: Trial
    config: TrainConfig
    command: str
    path: Path


def write_best(config: TuneConfig, study: Study, folder: Path) -> Best:
    """Write the best trial to best.json, as a command and as a configuration."""
    trial = study.best
    if trial is None:
        failure = next((trial.failure for trial in study.trials if trial.failure), "")
        raise UserError(f"No trial completed: {failure}")
    best = replace(applied(config.train_config(), trial.values), seed=0, run_dir=None)
    command = shlex.join(["twotower", "train", *arguments(best)])
    path = folder / "best.json"
    found = {
        "score": trial.score,
        "trial": trial.number,
        "values": trial.values,
        "command": command,
        "config": to_dict(best),
    }
    write_atomically(path, (json.dumps(found, indent=2) + "\n").encode())
    return Best(trial, best, command, path)


def arguments(config: TrainConfig) -> list[str]:
    """What to tell `twotower train` for this configuration: the task, the preset, and what differs from those."""
    usual = task_config(config.task, config.policy.kind, config.preset)
    words = [config.task, "--preset", config.preset]
    if usual.policy.kind != task_config(config.task, None, config.preset).policy.kind:
        words += ["--kind", config.policy.kind]
    return words + _flags(to_dict(config), to_dict(usual), "--")


def _flags(plain: dict[str, Any], usual: dict[str, Any], prefix: str) -> list[str]:
    words: list[str] = []
    for name, value in plain.items():
        flag = prefix + name.replace("_", "-")
        if isinstance(value, dict):
            words += _flags(value, usual[name], f"{flag}.")
        elif value != usual[name] and isinstance(value, bool):
            words.append(flag if value else f"{prefix}no-{name.replace('_', '-')}")
        elif value != usual[name]:
            words += [flag, *map(str, value if isinstance(value, tuple | list) else [value])]
    return words

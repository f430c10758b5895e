"""Logs hold every iteration once, as the real readers see them, however often a run was killed and resumed."""

import dataclasses
import importlib.util
import json
import struct
from pathlib import Path
from typing import Any

import pytest

import twotower as tt
from tests.command import ENVIRONMENT, start, twotower, wait_for_rows
from twotower.logs import check_logs
from twotower.logs.base import scalars
from twotower.training import task_config

TRAIN = ("train", "cartpole", "--plain", "--workers", "1", "--run-dir", "run", "--evaluation-episodes", "2")


def tensorboard(run: Path) -> dict[str, list[tuple[int, float]]]:
    """Every scalar's steps and values, as TensorBoard reads them."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(run / "tensorboard"), size_guidance={"scalars": 0})
    events.Reload()
    return {tag: [(event.step, event.value) for event in events.Scalars(tag)] for tag in events.Tags()["scalars"]}


def wandb_history(run: Path) -> list[dict[str, Any]]:
    """The history that `wandb sync` would upload: protocol buffers in LevelDB's log format."""
    from wandb.proto.wandb_internal_pb2 import Record

    (file,) = run.glob("wandb/offline-run-*/run-*.wandb")
    data, position, parts, rows = file.read_bytes(), 7, b"", []
    while position + 7 <= len(data):
        left = 32768 - position % 32768
        if left < 7:
            position += left
            continue
        _, length, kind = struct.unpack("<IHB", data[position : position + 7])
        parts += data[position + 7 : position + 7 + length]
        position += 7 + length
        if kind in (1, 4):  # whole, or the last part
            record, parts = Record.FromString(parts), b""
            if record.WhichOneof("record_type") == "history":
                items = record.history.item
                rows.append({item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in items})
    return rows


def test_tensorboard_reads_every_iteration_once_after_a_kill(tmp_path: Path) -> None:
    options = ("--log", "tensorboard", "--checkpoint-seconds", "1e9")
    training = start(*TRAIN, "--iterations", "100000", *options, cwd=tmp_path)
    wait_for_rows(tmp_path / "run", 20, training)
    training.kill()
    training.communicate()
    twotower("resume", "run", "--iterations", "12", "--workers", "1", cwd=tmp_path)
    run = tt.Run(tmp_path / "run")
    read = tensorboard(tmp_path / "run")
    assert [step for step, _ in read["return"]] == list(range(1, 13))
    assert [value for _, value in read["return"]] == [pytest.approx(row["return"]) for row in run.metrics]
    assert read["evaluation/mean"] == [(12, pytest.approx(run.policy.file.evaluation.mean))]  # pyright: ignore
    twotower("resume", "run", "--iterations", "15", "--workers", "1", cwd=tmp_path)
    assert [step for step, _ in tensorboard(tmp_path / "run")["population/mean"]] == list(range(1, 16))


def test_weights_and_biases_offline_holds_every_iteration_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ENVIRONMENT, "WANDB_MODE", "offline")
    twotower(*TRAIN, "--iterations", "3", "--log", "wandb", cwd=tmp_path)
    twotower("resume", "run", "--iterations", "5", "--workers", "1", cwd=tmp_path)
    metrics = tt.Run(tmp_path / "run").metrics
    rows = wandb_history(tmp_path / "run")
    assert [row["_step"] for row in rows] == [1, 2, 3, 4, 5]
    assert [row["return"] for row in rows] == [row["return"] for row in metrics]
    assert "evaluation/mean" in rows[-1] and "seconds/rollouts" in rows[0]


def test_not_logged_in_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ENVIRONMENT, "HOME", str(tmp_path))
    for name in ("WANDB_API_KEY", "WANDB_MODE"):
        monkeypatch.delitem(ENVIRONMENT, name, raising=False)
    done = twotower(*TRAIN, "--iterations", "1", "--log", "wandb", cwd=tmp_path, expect=2)
    assert "run wandb login, or set WANDB_MODE=offline" in done.stderr.splitlines()[-1]


def test_missing_packages_and_unknown_logs_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "tensorboardX" else find(name))
    with pytest.raises(tt.UserError, match=r'tensorboardX; run: pip install "twotower\[log\]"'):
        check_logs(dataclasses.replace(task_config("cartpole"), log=("tensorboard",)))
    done = twotower(*TRAIN, "--log", "paper", cwd=tmp_path, expect=2)
    assert "tensorboard" in done.stderr and not (tmp_path / "run").exists()


def test_scalars_are_finite_numbers() -> None:
    row = {"iteration": 3, "return": 1, "best": float("-inf"), "population_mean": 2.0, "seconds_ask": 0.5, "note": "x"}
    assert scalars(row) == {"return": 1.0, "population/mean": 2.0, "seconds/ask": 0.5}

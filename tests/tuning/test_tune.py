"""Tuning through the command line, on a small world."""

import json
import shlex
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.command import sentence, start, twotower
from twotower.randomness import Domain, derive
from twotower.rollout.plan import episode_seed
from twotower.tuning.tune import FIRST_SEED

pytest.importorskip("optuna")

WORLD = "tests.worlds:World-v0"
SMALL = ["--steps", "300", "--rungs", "2", "--evaluation-episodes", "4", "--over", "sigma", "directions"]


def trials(folder: Path) -> list[dict[str, Any]]:
    return json.loads((folder / "trials.json").read_text())


def test_a_study_ends_with_a_command_that_trains(tmp_path: Path) -> None:
    said = twotower("tune", WORLD, "--trials", "3", *SMALL, "--run-dir", "study", cwd=tmp_path)
    best = json.loads((tmp_path / "study" / "best.json").read_text())
    rows = trials(tmp_path / "study")
    assert len(rows) == 3 and all(row["state"] == "complete" and len(row["scores"]) == 2 for row in rows)
    assert best["score"] == max(row["scores"][-1] for row in rows)
    assert best["command"] in said.stdout and "ETA" in said.stderr and "best" in said.stderr
    used = {json.loads(path.read_text())["seed"] for path in tmp_path.glob("study/trials/*/config.json")}
    assert len(used) == 1 and min(used) >= 10**9 and best["config"]["seed"] == 0
    command = shlex.split(best["command"])
    twotower(*command[1:], "--run-dir", "best", "--executor", "serial", cwd=tmp_path)
    trained = json.loads((tmp_path / "best" / "config.json").read_text())
    assert {**trained, "run_dir": None, "executor": "processes"} == best["config"]


def test_a_study_that_was_stopped_ends_as_one_that_was_not(tmp_path: Path) -> None:
    whole = ["tune", WORLD, "--trials", "4", *SMALL, "--seeds", "2", "--run-dir"]
    twotower(*whole, "whole", cwd=tmp_path)
    process = start(*whole, "parts", cwd=tmp_path)
    assert process.stderr is not None
    while "trial 1  rung 1/2" not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130 and "Go on with: twotower tune parts" in out and "Traceback" not in err
    assert len(trials(tmp_path / "parts")) < 4
    twotower("tune", "parts", cwd=tmp_path)
    assert trials(tmp_path / "parts") == trials(tmp_path / "whole")
    assert (tmp_path / "parts" / "best.json").read_bytes() == (tmp_path / "whole" / "best.json").read_bytes()


def test_bad_input_gets_a_sentence(tmp_path: Path) -> None:
    for words, said in (
        (["nonsense-v9"], "nonsense-v9"),
        ([WORLD, "--over", "sgma"], "--over takes sigma, step"),
        ([WORLD, "--over", "sgma"], "(did you mean 'sigma'?)"),
        ([WORLD, "--over", "sigma", "sigma"], "each once"),
        ([WORLD, "--trials", "0"], "--trials must be at least 1, not 0."),
        ([WORLD, "--iterations", "5"], "A trial's budget is --steps"),
        ([WORLD, "--preset", "paper"], "--steps"),
    ):
        assert said in sentence("tune", *words, cwd=tmp_path), words
    assert not list(tmp_path.iterdir())


def test_another_study_is_not_mixed_in(tmp_path: Path) -> None:
    twotower("tune", WORLD, "--trials", "1", *SMALL, "--run-dir", "study", cwd=tmp_path)
    said = sentence("tune", WORLD, "--trials", "1", *SMALL, "--seed", "1", "--run-dir", "study", cwd=tmp_path)
    assert said == "study holds another study: go on with it by twotower tune study, or name another."
    assert "another study" in sentence("tune", "study", "--sigma", "3", cwd=tmp_path)
    twotower("tune", "study", "--trials", "2", cwd=tmp_path)
    assert len(trials(tmp_path / "study")) == 2


def test_a_task_that_breaks_in_every_trial_says_how(tmp_path: Path) -> None:
    first = FIRST_SEED + derive(0, Domain.TUNING, 0, 0) % FIRST_SEED
    fault = {"fault": "raise", "bad_seed": episode_seed(first, Domain.ENVIRONMENT, 0, 0)}
    words = ("tune", WORLD, "--trials", "2", *SMALL, "--env.kwargs", json.dumps(fault), "--run-dir", "study")
    done = twotower(*words, cwd=tmp_path, expect=2)
    assert done.stderr.splitlines()[-1].startswith("twotower: No trial completed: tests.worlds:World-v0 raised")
    assert [row["state"] for row in trials(tmp_path / "study")] == ["failed", "failed"]
    assert "trial 1  rung 0/2  failed: " in done.stderr

"""`twotower reproduce` as users run it: results, going on, extending, collecting, and what it refuses."""

import json
import queue
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.command import sentence, start, twotower, wait_for_rows
from twotower.experiments.queue import Runner

WORLD = "tests.worlds:World-v0"
TINY = ("--tasks", WORLD, "--policies", "itt", "explicit", "--workers", "1")


def data(cwd: Path, result: str = "scores") -> dict[str, Any]:
    return json.loads((cwd / "results" / result / "data.json").read_text())


def curves(cwd: Path) -> list[list[float]]:
    """The returns of every run of the scores, from its record."""
    files = [cwd / "results" / run["record"] for run in data(cwd)["runs"]]
    return [json.loads(file.read_text())["return"] for file in files]


def test_runs_once_and_for_all(tmp_path: Path) -> None:
    """A user's own task; a second command trains nothing and writes the same; shorter runs are extended, and kept."""
    twotower("reproduce", "scores", *TINY, "--iterations", "2", cwd=tmp_path)
    first, short = data(tmp_path), curves(tmp_path)
    assert {(run["policy"], run["seed"], run["iterations"]) for run in first["runs"]} == {
        (policy, seed, 2) for policy in ("itt", "explicit") for seed in (0, 1)
    }
    assert not first["failed"] and not first["not_run"] and "ITT nothing printed" in first["tables"][0]["rows"][0][-2]
    table = (tmp_path / "results/scores/table.md").read_text()
    assert first["command"] in table and WORLD in table
    folders = sorted((tmp_path / "runs/reproduce").iterdir())
    stamps = [(folder / "policy.safetensors").stat().st_mtime_ns for folder in folders]
    again = twotower("reproduce", "curves", *TINY, "--iterations", "2", cwd=tmp_path)
    assert stamps == [(folder / "policy.safetensors").stat().st_mtime_ns for folder in folders]
    assert "4 of 4 runs finished" in again.stdout
    assert {file.name for file in (tmp_path / "results/curves").iterdir()} >= {
        "curves-percentiles.png", "curves-percentiles.svg", "curves-confidence.png", "curves-confidence.svg",
    }  # fmt: skip
    twotower("reproduce", "scores", *TINY, "--iterations", "3", cwd=tmp_path)
    longer = curves(tmp_path)
    assert [len(curve) for curve in longer] == 4 * [3] and [curve[:2] for curve in longer] == short
    assert all(folder.exists() for folder in folders)
    fresh = tmp_path / "fresh"
    fresh.mkdir()
    twotower("reproduce", "scores", *TINY, "--iterations", "3", cwd=fresh)
    assert curves(fresh) == longer


def test_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    """Ctrl-C keeps what is done, and the rest has the bits of a command that was never stopped."""
    command = ("reproduce", "scores", "--tasks", "cartpole", "--policies", "itt", "--budget", "paper", "--seeds", "1",
               "--workers", "1")  # fmt: skip
    process = start(*command, cwd=tmp_path)
    runs = tmp_path / "runs/reproduce"
    while not list(runs.glob("*")):
        assert process.poll() is None, process.communicate()
    (run,) = runs.iterdir()
    wait_for_rows(run, 3, process)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130 and "Traceback" not in err, err
    assert "Go on with the same command" in out
    rows = (run / "metrics.jsonl").read_bytes().count(b"\n")
    assert 3 <= rows < 200 and not (tmp_path / "results").exists()
    twotower("reproduce", "scores", "--collect", *command[2:], cwd=tmp_path)
    assert data(tmp_path)["runs"] == [] and "not run" in data(tmp_path)["tables"][0]["rows"][0][2]
    twotower(*command, cwd=tmp_path)
    whole = tmp_path / "whole"
    whole.mkdir()
    twotower(*command, cwd=whole)
    assert curves(tmp_path) == curves(whole)


def test_a_process_that_does_not_stop_is_killed_and_heard_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twotower.experiments.queue.GRACE_SECONDS", 0.0)
    at_once = Runner._last_words
    monkeypatch.setattr(Runner, "_last_words", lambda runner, code: [time.sleep(0.2), at_once(runner, code)][1])
    events: queue.Queue[tuple[Runner, dict[str, Any]]] = queue.Queue()
    Runner(events).close()
    assert "ended by signal 9" in events.get_nowait()[1]["failed"]


def test_one_bad_run_does_not_lose_the_others(tmp_path: Path) -> None:
    runs = tmp_path / "runs/reproduce"
    twotower("reproduce", "scores", *TINY, "--iterations", "1", cwd=tmp_path)
    for folder in sorted(runs.iterdir()):
        (folder / "policy.safetensors").unlink()
        (tmp_path / "results/runs" / f"{folder.name}.json").unlink()
    broken = sorted(runs.iterdir())[0]
    (broken / "config.json").write_text("{")
    done = twotower("reproduce", "scores", *TINY, "--iterations", "1", cwd=tmp_path, expect=1)
    assert f"{broken.name} failed:" in done.stderr
    assert list(data(tmp_path)["failed"]) == [broken.name] == data(tmp_path)["not_run"]
    assert len(data(tmp_path)["runs"]) == 3


def test_bad_input_is_refused_before_anything_runs(tmp_path: Path) -> None:
    assert "did you mean 'scores'" in sentence("reproduce", "score", cwd=tmp_path)
    assert "--list" in sentence("reproduce", cwd=tmp_path)
    assert "--seeds" in sentence("reproduce", "scores", "--seeds", "0", cwd=tmp_path)
    assert "Hoper-v4" in sentence("reproduce", "scores", "--tasks", "Hoper-v4", cwd=tmp_path)
    (tmp_path / "file").write_text("")
    assert "file" in sentence("reproduce", "scores", "--tasks", "cartpole", "--runs", "file/runs", cwd=tmp_path)
    assert not (tmp_path / "runs").exists() and not (tmp_path / "results").exists()


def test_the_list_has_every_result(tmp_path: Path) -> None:
    from twotower.experiments import RESULTS

    rows = json.loads(twotower("reproduce", "--list", "--json", cwd=tmp_path).stdout)
    assert [row["result"] for row in rows] == list(RESULTS)
    assert all(row["paper"]["core_minutes"] >= row["quick"]["core_minutes"] >= 0 for row in rows)

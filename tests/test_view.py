"""What a user sees while training."""

import os
import pty
import re
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.command import ENVIRONMENT, start, twotower, wait_for_rows
from twotower.analysis.curve import Curve
from twotower.runs import RunFolder
from twotower.view import duration, phases, sparkline


@pytest.mark.parametrize(
    ("values", "width", "shown"),
    [
        ([0.0, 1.0], 10, "▁█"),
        ([0.0] * 5, 10, "▁▁▁▁▁"),
        ([float(k) for k in range(8)], 8, "▁▂▃▄▅▆▇█"),
        ([float(k // 2) for k in range(16)], 8, "▁▂▃▄▅▆▇█"),
        ([-3.0], 5, "▁"),
        ([], 5, ""),
    ],
)
def test_sparklines(values: list[float], width: int, shown: str) -> None:
    assert (sparkline(values, width) if values else "") == shown


def test_phases_add_up_to_the_iteration() -> None:
    row = {"seconds_ask": 0.1, "seconds_rollouts": 0.8, "seconds_tell": 0.1}
    row |= {"seconds_median_worker": 0.6, "seconds_slowest_worker": 0.7}
    text = phases(row)
    assert text.startswith("1,000 ms an iteration: 60 % in episodes")
    assert sum(map(int, re.findall(r"(\d+) %", text))) == 100
    assert duration(3661) == "1:01:01"


def test_a_terminal_shows_a_live_view(tmp_path: Path) -> None:
    leader, follower = pty.openpty()
    environment = {**ENVIRONMENT, "TERM": "xterm-256color", "COLUMNS": "110", "LINES": "30"}
    command = [sys.executable, "-m", "twotower.cli", "train", "cartpole", "--iterations", "60", "--workers", "1"]
    process = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=follower, stderr=follower)
    os.close(follower)
    seen, deadline = b"", time.monotonic() + 200
    while process.poll() is None or select.select([leader], [], [], 0)[0]:
        assert time.monotonic() < deadline
        if select.select([leader], [], [], 0.1)[0]:
            try:
                seen += os.read(leader, 65536)
            except OSError:  # the other end is closed
                break
    assert process.wait() == 0
    os.close(leader)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen.decode())
    for words in ("cartpole", "itt, seed 0", "iteration 60/60", "env-steps/s", "ms an iteration", "in episodes", "█"):
        assert words in text, words
    assert "run folder: runs/cartpole" in text


def test_plain_lines_are_for_pipes(tmp_path: Path) -> None:
    done = twotower("train", "cartpole", "--iterations", "3", "--workers", "1", cwd=tmp_path)
    assert "iteration 3/3  return" in done.stdout and "\x1b" not in done.stdout


def test_the_curve_is_drawn_while_training_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = twotower("train", "cartpole", "--iterations", "3", "--workers", "1", "--run-dir", "run", cwd=tmp_path)
    assert "evaluation" in done.stdout
    folder = RunFolder(tmp_path / "run")
    folder.curve.unlink()
    monkeypatch.setattr("twotower.analysis.curve.FIRST_AFTER", 0.0)
    deadline = time.monotonic() + 60
    with Curve(folder) as curve:
        began = time.monotonic()
        curve.refresh()
        assert time.monotonic() - began < 1.0  # drawing takes longer, and nobody waits for it
        while not folder.curve.exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)
    assert folder.curve.read_bytes().startswith(b"\x89PNG")


def test_a_stopped_run_has_its_curve(tmp_path: Path) -> None:
    training = start("train", "cartpole", "--iterations", "100000", "--workers", "1", "--run-dir", "run", cwd=tmp_path)
    wait_for_rows(tmp_path / "run", 3, training)
    training.terminate()
    training.communicate(timeout=60)
    assert (tmp_path / "run" / "curve.png").read_bytes().startswith(b"\x89PNG")

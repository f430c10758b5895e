"""Real processes, stopped by real signals: the next command goes on and ends with the same bits."""

import signal
from pathlib import Path

import pytest

from tests.command import start, twotower, wait_for_rows
from tests.training.kills import finish_killing
from tests.training.runs import new_folder, result, train_on, variant
from twotower.runs import Checkpoint, RunFolder, read_metrics


@pytest.mark.parametrize("name", ["hopper, iteration, lazy", "lunarlander, step"])
def test_killed_runs_end_with_the_bits_of_the_whole_one(name: str, tmp_path: Path) -> None:
    """The fast form of tests/slow/test_kills.py."""
    assert finish_killing(variant(name, iterations=40), tmp_path, kills=2, seed=1) == 2


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_ctrl_c_and_sigterm_stop_at_the_next_iteration(number: signal.Signals, code: int, tmp_path: Path) -> None:
    folder = new_folder(variant("world", iterations=10**6, checkpoint_seconds=1e6), tmp_path / "stopped")
    process = start("resume", "stopped", "--plain", cwd=tmp_path)
    wait_for_rows(folder.path, 20, process)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == code, err
    done = Checkpoint.load(folder.checkpoint).iteration
    assert f"Stopped after iteration {done}. Go on with: twotower resume stopped\n" in out
    assert "Stopping after this iteration" in err and "Traceback" not in err
    assert done == len(read_metrics(folder.metrics)) >= 20
    twotower("resume", "stopped", "--iterations", str(done + 5), cwd=tmp_path)
    whole = new_folder(variant("world", iterations=done + 5), tmp_path / "whole")
    train_on(whole)
    assert result(RunFolder(folder.path)) == result(whole)

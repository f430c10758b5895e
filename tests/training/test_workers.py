"""θ after five iterations is the same bits whoever does the work; tests/slow/test_workers.py tries more tasks."""

from pathlib import Path

import twotower as tt
from tests.training.runs import new_folder, result, same_for_all_workers, train_on, variant
from twotower.runs import RunFolder


def test_one_two_or_four_workers_in_processes_or_not(tmp_path: Path) -> None:
    same_for_all_workers("hopper, step", tmp_path)


def test_a_run_may_change_its_workers_on_the_way(tmp_path: Path) -> None:
    folder = new_folder(variant("world"), tmp_path / "whole")
    train_on(folder)
    run = tt.train(variant("world", iterations=3, run_dir=str(tmp_path / "changed")), progress=False)
    tt.resume(run.folder, iterations=6, executor="processes", workers=2, progress=False)
    assert result(RunFolder(run.folder)) == result(folder)

"""The times of a run's iterations, as its metrics have them."""

import json
from pathlib import Path

import pytest

from tests.training.runs import new_folder, train_on, variant
from twotower import cli
from twotower.errors import UserError
from twotower.runs import read_metrics


def test_the_phases_add_up_to_the_iterations(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = new_folder(variant("world"), tmp_path / "run")
    train_on(folder)
    assert cli.run("times", [str(folder.path), "--last", "4", "--json"]) == 0
    found, rows = json.loads(capsys.readouterr().out), read_metrics(folder.metrics)[-4:]
    whole = sum(row["seconds_ask"] + row["seconds_rollouts"] + row["seconds_tell"] for row in rows) / 4
    assert sum(found["seconds"].values()) == pytest.approx(whole, rel=1e-6)
    assert (found["first"], found["last"], found["workers"]) == (3, 6, 1)
    assert cli.run("times", [str(folder.path)]) == 0
    out = capsys.readouterr().out
    assert "iterations 1-6" in out and "rollouts" in out and "environment steps a second" in out


def test_what_tells_no_times_is_refused(tmp_path: Path) -> None:
    folder = new_folder(variant("world"), tmp_path / "run")
    with pytest.raises(UserError, match="has no iteration yet"):
        cli.run("times", [str(folder.path)])
    folder.metrics.write_text('{"iteration": 1}\n')
    with pytest.raises(UserError, match="do not tell times"):
        cli.run("times", [str(folder.path)])
    with pytest.raises(UserError, match="--last must be at least 1"):
        cli.run("times", [str(folder.path), "--last", "0"])

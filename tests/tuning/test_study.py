"""Studies choose and prune alike however often they were stopped; no run is needed to see that."""

import math
from pathlib import Path
from typing import Any

import pytest

from twotower.errors import UserError
from twotower.tuning.study import UNPRUNED_TRIALS, Study, Trial

pytest.importorskip("optuna")

OVER = ("sigma", "rule")
FIRST = {"sigma": 1.0, "rule": "sgd"}


def scored(values: dict[str, Any], rung: int) -> float:
    """A task whose best σ is 0.1; trials grow with every rung."""
    return (rung + 1) * (10 - abs(math.log10(values["sigma"] / 0.1))) + (values["rule"] == "adam")


def carry_out(path: Path, trials: int, seed: int = 0, abreast: int = 2, stop_after: int = 10**9) -> Study:
    """A study whose scores cost nothing; it reads its file anew before every rung, as one that is resumed does."""
    asked = 0
    while True:
        study = Study(path, OVER, seed, rungs=3)
        study.load()
        batch = study.ask(abreast, trials, FIRST)
        if not batch:
            return study
        before = batch[0].number - batch[0].number % abreast
        for trial in batch:
            if asked == stop_after:
                return study
            asked += 1
            study.save(study.judged(trial, scored(trial.values, len(trial.scores)), before))


def test_a_stopped_study_goes_on_as_if_it_never_was(tmp_path: Path) -> None:
    whole = carry_out(tmp_path / "whole", 14).trials
    for stop in (0, 1, 5, 9, 22):
        path = tmp_path / f"parts-{stop}"
        carry_out(path, 14, stop_after=stop)
        assert carry_out(path, 14).trials == whole
    carry_out(tmp_path / "extended", 5)
    assert carry_out(tmp_path / "extended", 14).trials == whole
    assert carry_out(tmp_path / "other", 14, seed=1).trials[1:] != whole[1:]


def test_the_first_trial_is_what_it_was_told(tmp_path: Path) -> None:
    assert carry_out(tmp_path / "study", 2).trials[0].values == FIRST


def test_a_model_finds_what_chance_would_not(tmp_path: Path) -> None:
    best = carry_out(tmp_path / "study", 40).best
    assert best is not None and best.values["rule"] == "adam" and 0.05 < best.values["sigma"] < 0.2


def test_what_is_below_the_median_of_the_rung_ends_there(tmp_path: Path) -> None:
    study = Study(tmp_path / "study", ("sigma",), 0, rungs=2)
    for number in range(UNPRUNED_TRIALS):
        study.save(Trial(number, {"sigma": 1.0}, (float(number), 10.0), "complete"))
    trial = Trial(UNPRUNED_TRIALS, {"sigma": 1.0})
    assert study.judged(trial, 1.4, UNPRUNED_TRIALS).state == "pruned"
    assert study.judged(trial, 1.6, UNPRUNED_TRIALS).state == "running"
    assert study.judged(study.judged(trial, 1.6, UNPRUNED_TRIALS), -5.0, UNPRUNED_TRIALS).state == "complete"
    assert study.judged(trial, 1.4, UNPRUNED_TRIALS - 1).state == "running"


def test_failures_are_no_scores(tmp_path: Path) -> None:
    study = Study(tmp_path / "study", ("sigma",), 0, rungs=1)
    study.save(Trial(0, {"sigma": 1.0}, (), "failed", "it broke"))
    study.save(Trial(1, {"sigma": 1.0}, (), "failed", "it broke"))
    assert study.best is None and len(study.ask(2, 4, {"sigma": 1.0})) == 2


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "trials.json"
    for content in ("[", '[{"numbr": 0}]', "[3]", "{}3"):
        path.write_text(content)
        with pytest.raises(UserError, match="is damaged"):
            Study(path, OVER, 0, 1).load()

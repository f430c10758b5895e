"""`twotower reproduce fast`: its runs, when a score counts as reached, and what it writes."""

import importlib.util
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.command import twotower
from twotower.config import to_dict
from twotower.experiments import fast
from twotower.experiments.plan import Choice
from twotower.experiments.result import Evidence
from twotower.training import task_config


def run(returns: list[float], steps: int = 10) -> Any:
    rows = [{"steps": steps * (index + 1)} for index in range(len(returns))]
    return SimpleNamespace(returns=np.array(returns, dtype=np.float64), rows=rows)


def test_a_score_is_reached_by_the_mean_of_iterations_not_by_one() -> None:
    assert fast.steps_to(run([0, 0, 0, 0, 100, 0, 0]), 50) == np.inf
    assert fast.steps_to(run([0, 0, 0, 100, 100, 100, 0]), 50) == 60
    assert fast.steps_to(run([60] * 5), 50) == 50
    assert fast.steps_to(run([60] * 4), 50) == np.inf
    np.testing.assert_allclose(fast.smoothed(run([1, 2, 3, 4, 5, 6]))[3:], [np.nan, 3, 4])


def test_seeds_that_never_reach_it_have_no_median_when_they_are_most() -> None:
    assert fast.middle([1.0, 2.0, np.inf]) == "2.00 (1.00 to never)"
    assert fast.middle([1.0, np.inf, np.inf]) == "not reached"
    assert fast.middle([3.0]) == "3.00"


def test_every_cell_trains_as_long_as_its_bar() -> None:
    plan = fast.plan(Choice("paper"))
    assert len({run.name for run in plan}) == len(plan)
    assert {run.config.seed for run in plan} == set(range(fast.SEEDS))
    for run in plan:
        untuned = run.config.task in fast.UNTUNED
        assert run.config.steps == (10**6 if untuned else fast.BARS[run.config.task].steps)
        assert run.config.iterations is None
        assert run.config.preset == ("ars" if run.variant == "ars" else "fast")
    for cut in fast.plan(Choice("quick")) + fast.plan(Choice("paper", iterations=2)):
        assert cut.short and cut.config.iterations in (2, 3)


def test_untuned_tasks_take_the_default_and_have_a_table_of_their_own() -> None:
    plan = fast.plan(Choice("paper", seeds=1, tasks=("Pendulum-v1", "fish-swim")))
    usual = to_dict(task_config("NobodyKnows-v0", preset="fast"))
    kinds = {run.cell for run in plan if run.config.task == "Pendulum-v1"}
    assert kinds == {("Pendulum-v1", "itt", "fast"), ("Pendulum-v1", "explicit", "ars")}
    for part in ("policy", "strategy", "candidates"):
        assert to_dict(plan[0].config)[part] == usual[part]
    evidence = Evidence(Choice("paper", seeds=1), plan, [])
    titles = {table.title: [row[0] for row in table.rows] for table in fast.conclude(evidence).tables}
    assert titles["Untuned"] == ["Pendulum-v1"]
    assert titles["Steps to the paper's final score"] == ["fish-swim"] == titles["Policies under one trainer"]


def test_an_ablation_changes_one_ingredient() -> None:
    usual = to_dict(task_config("lunarlander", preset="fast"))
    runs = {run.variant: to_dict(run.config) for run in fast.plan(Choice("paper", seeds=1, tasks=("lunarlander",)))}
    for variant, changes in fast.ABLATION.items():
        expected = {part: {**usual[part], **fields} for part, fields in changes.items()}
        for part in ("policy", "candidates", "strategy", "env"):
            found, wanted = dict(runs[variant][part]), dict(expected.get(part, usual[part]))
            if variant in fast.SHAPED_BY_SCALE and part == "strategy":
                assert found.pop("step_size") != wanted.pop("step_size")
            assert found == wanted


@pytest.mark.skipif(importlib.util.find_spec("envpool") is None, reason="EnvPool is not installed")
def test_what_it_writes(tmp_path: Path) -> None:
    words = ("--tasks", "acrobot", "--policies", "itt", "explicit", "--seeds", "1", "--workers", "1")
    said = twotower("reproduce", "fast", *words, cwd=tmp_path)
    data = json.loads((tmp_path / "results/fast/data.json").read_text())
    assert {(run["policy"], run["variant"]) for run in data["runs"]} == {
        ("itt", "fast"), ("explicit", "fast"), ("explicit", "ars"),
    }  # fmt: skip
    steps, ars, policies = data["tables"]
    assert steps["rows"][0][:3] == ["acrobot", "−82.60 within 0.5 M", "0 of 1"] and steps["rows"][0][-1] == "cut"
    assert ars["rows"][0][-1] == "cut" and len(policies["rows"][0]) == 4
    assert "Against ARS at equal steps" in said.stdout

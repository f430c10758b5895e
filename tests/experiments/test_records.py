"""Records of finished runs: all that results ask for, wherever the run's folder is, and nothing of another run's."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.command import sentence, twotower
from twotower import api
from twotower.config import StrategyConfig
from twotower.errors import UserError
from twotower.experiments.folders import Kept
from twotower.experiments.plan import Planned
from twotower.runs import PolicyFile, read_metrics
from twotower.training import task_config

WORLD = "tests.worlds:World-v0"
TINY = ("--tasks", WORLD, "--policies", "itt", "explicit", "--iterations", "2", "--workers", "1")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Kept, Planned]:
    """A run with normalised observations, trained and recorded."""
    folder = tmp_path_factory.mktemp("made")
    kept = Kept(folder / "runs", folder / "results/runs")
    config = replace(task_config(WORLD, preset="fast"), seed=3, iterations=4, workers=1, evaluation_episodes=2)
    planned = Planned(config, "variant")
    api.train(kept.config(planned), progress=False)
    assert kept.finished(planned, "the command") is not None
    return kept, planned


def test_a_record_holds_what_the_folder_does(made: tuple[Kept, Planned]) -> None:
    kept, planned = made
    found = kept.finished(planned, "another command")
    assert found is not None and found.name == planned.name and found.seed == 3
    file, rows = PolicyFile.load(kept.folders / planned.name / "policy.safetensors"), kept.folders / planned.name
    assert (found.policy.theta == file.theta).all() and found.policy.evaluation == file.evaluation
    assert file.normaliser is not None and found.policy.normaliser is not None
    assert all((a == b).all() for a, b in zip(found.policy.normaliser, file.normaliser, strict=True))
    assert found.policy.config == replace(file.config, run_dir=None) and found.policy.versions == file.versions
    written = read_metrics(rows / "metrics.jsonl")
    assert len(found.rows) == 4 == found.iterations
    for name in ("steps", "seconds", "return"):
        wanted = [row[name] for row in written]
        np.testing.assert_allclose([row[name] for row in found.rows], wanted, rtol=1e-6)
    text = (kept.records / f"{planned.name}.json").read_text()
    assert json.loads(text)["command"] == "the command" and str(kept.folders) not in text


def test_records_suffice(tmp_path: Path) -> None:
    """Without the folders, the same command trains nothing, and writes the same."""
    here, clone = tmp_path / "here", tmp_path / "clone"
    here.mkdir()
    for result in ("scores", "curves"):
        twotower("reproduce", result, *TINY, cwd=here)
    shutil.copytree(here / "results/runs", clone / "results/runs")
    for result in ("scores", "curves"):
        said = twotower("reproduce", result, *TINY, cwd=clone)
        assert "4 of 4 runs finished" in said.stdout
        for file in (here / "results" / result).iterdir():
            assert file.read_bytes() == (clone / "results" / result / file.name).read_bytes()
    assert not list((clone / "runs/reproduce").iterdir())
    twotower("reproduce", "scores", *TINY, "--iterations", "3", "--collect", cwd=clone)
    shorter = json.loads((clone / "results/scores/data.json").read_text())["runs"]
    assert [run["iterations"] for run in shorter] == 4 * [2] and all("-2it" in run["record"] for run in shorter)


def test_another_configuration_is_another_run(made: tuple[Kept, Planned]) -> None:
    kept, planned = made
    alone = Kept(kept.folders / "none", kept.records)
    assert alone.is_finished(planned) and alone.finished(planned, "") is not None
    for other in (replace(planned.config, strategy=StrategyConfig(sigma=0.7)), replace(planned.config, seed=4)):
        assert alone.finished(replace(planned, config=other), "") is None
    longer = alone.finished(replace(planned, config=replace(planned.config, iterations=9)), "")
    assert longer is not None and longer.cut and longer.name == planned.name


def _edit(change: Callable[[dict[str, Any]], Any]) -> Callable[[str], str]:
    def edited(text: str) -> str:
        record = json.loads(text)
        change(record)
        return json.dumps(record)

    return edited


DAMAGES: dict[str, Callable[[str], str]] = {
    "torn": lambda text: text[: len(text) // 2],
    "empty": lambda text: "",
    "a list": lambda text: "[]",
    "deep": lambda text: "[" * 100_000,
    "no columns": _edit(lambda record: record.pop("steps")),
    "short column": _edit(lambda record: record["return"].pop()),
    "words": _edit(lambda record: record["return"].__setitem__(0, "much")),
    "no number": _edit(lambda record: record.update(steps=7)),
    "another seed": _edit(lambda record: record["policy"]["config"].update(seed=5)),
    "another sigma": _edit(lambda record: record["policy"]["config"]["strategy"].update(sigma=0.7)),
    "another name": _edit(lambda record: record.update(name="x")),
    "unfinished": _edit(lambda record: record["policy"].update(evaluation=None)),
    "no theta": _edit(lambda record: record["arrays"].pop("theta")),
    "theta of words": _edit(lambda record: record["arrays"].update(theta=["a"])),
    "no arrays": _edit(lambda record: record.update(arrays=[])),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGES)
def test_what_is_no_record_of_the_run_is_refused_in_a_sentence(
    made: tuple[Kept, Planned], tmp_path: Path, name: str
) -> None:
    kept, planned = made
    file = tmp_path / f"{planned.name}.json"
    file.write_text(DAMAGES[name]((kept.records / file.name).read_text()))
    with pytest.raises(UserError, match=file.name):
        Kept(kept.folders, tmp_path).is_finished(planned)


def test_a_torn_record_is_named_before_anything_is_trained(tmp_path: Path) -> None:
    twotower("reproduce", "scores", *TINY, cwd=tmp_path)
    file = sorted((tmp_path / "results/runs").iterdir())[0]
    file.write_bytes(file.read_bytes()[:100])
    assert file.name in sentence("reproduce", "scores", *TINY, "--seeds", "9", cwd=tmp_path)
    assert len(list((tmp_path / "runs/reproduce").iterdir())) == 4

"""docs/results.md says what results/ says."""

import json
import shlex
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import tyro

from twotower.experiments import RESULTS, get, records
from twotower.experiments.command import ReproduceOptions
from twotower.experiments.page import PAPERS, page, verdicts
from twotower.experiments.plan import Planned
from twotower.experiments.records import Finished
from twotower.experiments.result import Evidence
from twotower.experiments.write import markdown, summary

ROOT = Path(__file__).parents[2]


def test_the_page_is_made_of_the_results() -> None:
    """If this fails: python -m twotower.experiments.page"""
    assert (ROOT / "docs/results.md").read_text() == page(ROOT / "results")


def test_the_page_changes_with_the_data(tmp_path: Path) -> None:
    (tmp_path / "remarks.md").write_text("Why.")
    empty = page(tmp_path)
    assert all(get(name).title in empty for name in PAPERS) and empty.count("Not run:") == len(PAPERS) == 12
    (tmp_path / "scores").mkdir()
    data = json.loads((ROOT / "results/scores/data.json").read_text())
    (tmp_path / "scores/data.json").write_text(json.dumps(data))
    assert page(tmp_path) != empty and data["tables"][0]["rows"][0][2] in page(tmp_path)


def test_tables_and_figures_are_those_of_the_data() -> None:
    for folder in (ROOT / "results").iterdir():
        if folder.name in RESULTS:
            data = json.loads((folder / "data.json").read_text())
            assert (folder / "table.md").read_text() == markdown(data)
            assert all((folder / figure).exists() for figure in data["figures"])


def recorded() -> list[str]:
    """The results that were concluded from records."""
    found = {name: ROOT / "results" / name / "data.json" for name in RESULTS}
    return [name for name, file in found.items() if file.exists() and '"record"' in file.read_text()]


def record_of(run: dict[str, Any], planned: Planned) -> Finished:
    """The record behind a run of data.json, which may be shorter than planned."""
    shorter = f"{run['name']}.json" not in run["record"]
    config = replace(planned.config, iterations=run["iterations"]) if shorter else planned.config
    found = records.read(ROOT / "results" / run["record"], planned, config)
    assert found is not None, run["record"]
    return found


@pytest.mark.parametrize("name", recorded())
def test_the_records_make_the_tables(name: str) -> None:
    """Whoever clones the repository, without any run folder, gets the same numbers from the runs that were there."""
    data = json.loads((ROOT / "results" / name / "data.json").read_text())
    options = tyro.cli(ReproduceOptions, args=shlex.split(data["command"])[2:])
    choice = replace(options.choice(), workers=max(run["workers"] for run in data["runs"]))
    plan = get(name).plan(choice)
    found = [record_of(run, next(planned for planned in plan if planned.name == run["name"])) for run in data["runs"]]
    evidence = Evidence(choice, plan, found)
    made_with: list[dict[str, str]] = []
    assert [summary(run, made_with) for run in evidence.runs] == data["runs"] and made_with == data["made_with"]
    tables = [asdict(table) for table in get(name).conclude(evidence).tables]
    assert json.loads(json.dumps(tables)) == data["tables"]


def test_records_are_small_and_tell_nothing_of_the_machines_folders() -> None:
    for file in (ROOT / "results/runs").glob("*.json"):
        assert file.stat().st_size < 200_000 and '"run_dir":null' in file.read_text(), file


def test_verdicts_are_counted() -> None:
    def table(*cells: str) -> dict[str, object]:
        return {"headings": ("task", "verdict"), "rows": [("t", cell) for cell in cells]}

    data = {"tables": [table("ITT agrees; IOT below; explicit cut", "not run", "", "same side", "above although cut")]}
    assert list(verdicts(data)) == ["reproduces", "differs", "undecided", "not run", "reproduces", "reproduces"]

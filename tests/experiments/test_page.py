"""docs/results.md says what results/ says."""

import json
from pathlib import Path

from twotower.experiments import RESULTS, get
from twotower.experiments.page import PAPERS, page, verdicts
from twotower.experiments.write import markdown

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


def test_verdicts_are_counted() -> None:
    def table(*cells: str) -> dict[str, object]:
        return {"headings": ("task", "verdict"), "rows": [("t", cell) for cell in cells]}

    data = {"tables": [table("ITT agrees; IOT below; explicit cut", "not run", "", "same side", "above although cut")]}
    assert list(verdicts(data)) == ["reproduces", "differs", "undecided", "not run", "reproduces", "reproduces"]

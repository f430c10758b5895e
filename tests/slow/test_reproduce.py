"""All published results at once, for a task of one's own."""

import json
from pathlib import Path

import pytest

from tests.command import start
from twotower.experiments import RESULTS

WORLD = "tests.worlds:World-v0"


@pytest.mark.slow
def test_every_result_of_a_users_own_task(tmp_path: Path) -> None:
    """All results take any task; each table has a verdict for every row, and no cell is silently empty."""
    process = start("reproduce", "all", "--tasks", WORLD, "--iterations", "2", "--workers", "2", cwd=tmp_path)
    out, err = process.communicate(timeout=1800)
    assert process.returncode == 0 and "Traceback" not in err, (out, err)
    for name in RESULTS:
        found = json.loads((tmp_path / "results" / name / "data.json").read_text())
        assert not found["failed"] and not found["not_run"], name
        for table in found["tables"]:
            assert all(len(row) == len(table["headings"]) for row in table["rows"]), name
            assert all(cell != "" or "verdict" in head for row in table["rows"]
                       for head, cell in zip(table["headings"], row, strict=True)), (name, table)  # fmt: skip
    assert (tmp_path / "results/srp-wall-clock/srp-wall-clock.png").exists()

"""The tables of what was tried, in docs/, are those of the records in results/."""

import json
from pathlib import Path
from typing import Any

from tests.slow import bits, faults, fuzz

ROOT = Path(__file__).parents[2]


def record(name: str) -> list[dict[str, Any]]:
    return json.loads((ROOT / "results" / name).read_text())


def page(name: str) -> str:
    return (ROOT / name).read_text()


def test_faults() -> None:
    rows = record("faults/faults.json")
    total = sum(row["injections"] for row in rows)
    assert faults.table(rows) in page("docs/reliability.md")
    assert f"{total} injections" in page("docs/reliability.md") and f"{total} faults injected" in page("README.md")


def test_fuzzing() -> None:
    rows = record("faults/fuzz.json")
    assert fuzz.table(rows) in page("docs/reliability.md")
    assert f"{sum(row['cases'] for row in rows):,} cases" in page("docs/reliability.md")


def test_bits_over_a_cluster() -> None:
    assert bits.table(record("cluster/bits.json")) in page("docs/cluster.md")

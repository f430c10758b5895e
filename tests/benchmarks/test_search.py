"""The search benchmark measures what it says, goes on where it stopped, and gives up only on what cannot win."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.command import sentence, twotower
from twotower.benchmarks import search, search_report
from twotower.benchmarks.search_workloads import TRAINED, Problem, workload


@pytest.mark.parametrize("size", TRAINED)
@pytest.mark.parametrize("kind", ["trained", "random"])
def test_workloads_have_the_latents_and_queries_they_say(kind: str, size: int) -> None:
    work = workload(kind, size)
    assert work.queries.shape == (512, size) and work.latents(1000).shape == (1000, size)
    assert np.array_equal(work.latents(100), work.latents(100))
    assert (work.past is None) == (kind == "random")
    if work.past is not None:
        assert work.past.shape == (1024, size) and not (work.past[:, None] == work.queries[:9]).all(axis=2).any()


def test_regrets_are_those_of_the_products() -> None:
    problem = Problem(workload("random", 6), 3000)
    products = problem.queries.astype(np.float64) @ problem.latents.T.astype(np.float64)
    best, mean = products.max(axis=1), products.mean(axis=1)
    np.testing.assert_allclose(problem.regrets(products.argmax(axis=1)), 0, atol=1e-6)
    expected = (best - products[:, 7]) / (best - mean)
    np.testing.assert_allclose(problem.regrets(np.full(512, 7)), expected, rtol=1e-4)


def tried(build: float, query: float, regret: float, **facts: Any) -> dict[str, Any]:
    return {"setting": "", "build": build, "query": query, "regret": regret, "worst": regret} | facts


def test_the_best_setting_depends_on_how_much_is_asked() -> None:
    method = [tried(1.0, 1e-6, 0.005), tried(0.1, 1e-5, 0.0), tried(0.0, 1e-9, 0.5), {"skipped": "why"}]
    assert search.total(method, 1e4, 0.01) == pytest.approx(0.2)
    assert search.total(method, 1e6, 0.01) == pytest.approx(2.0)
    assert search.total(method, 1e6, 0.001) == pytest.approx(10.1)
    ours = [tried(1.0, 1e-6, 0.0, queries_per_build=1e4, wanted_regret=0.01)]
    assert search.total(ours, 1e4, 0.01) == pytest.approx(1.01)
    assert search.total(ours, 1e6, 0.01) == np.inf and search.total(ours, 1e4, 0.001) == np.inf


def test_only_what_cannot_come_first_is_hopeless() -> None:
    cell = {"gemv": [tried(0.001, 1e-4, 0.0)]}
    slow, fast = [tried(30.0, 1e-3, 0.0)], [tried(30.0, 1e-6, 0.0)]
    assert "3 times the best" in str(search.hopeless("hnswlib", cell, (4, {"hnswlib": slow})))
    assert search.hopeless("hnswlib", cell, (2, {"hnswlib": fast})) is None
    assert "missed 1%" in str(search.hopeless("hnswlib", cell, (2, {"hnswlib": [tried(0.0, 1e-9, 0.02)]})))
    assert search.hopeless("hnswlib", cell, (4, {})) is None
    assert search.hopeless("gemv", cell, (4, {"gemv": slow})) is None


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("matplotlib")
    folder = tmp_path_factory.mktemp("search")
    arguments = ("--powers", "8", "--sizes", "2", "--workloads", "random", "--out", "results")
    twotower("bench", "search", *arguments, cwd=folder)
    return folder / "results"


def test_the_command_writes_results_table_and_figures(measured: Path) -> None:
    results = json.loads((measured / "results.json").read_bytes())
    cell = results["cells"]["random/2/8"]
    assert cell["done"] and len(cell["auto"]) == 8
    exact = [cell["gemv"][0], cell["brute_force"][0], cell["box_tree"][0]]
    assert all(one["build"] >= 0 and one["query"] > 0 and one["regret"] < 1e-6 for one in exact)
    assert all(one["regret"] <= one["worst"] for one in cell["srp_paper"])
    assert "| 2 | 2^8 |" in (measured / "table.md").read_text()
    assert {path.name for path in measured.glob("*.[ps][nv]g")} == {"query.png", "query.svg", "total.png", "total.svg"}
    assert len(search_report.races(results)) == 8


def test_a_second_call_measures_nothing_again(measured: Path) -> None:
    before = (measured / "results.json").read_bytes()
    out = twotower(
        "bench", "search", "--powers", "8", "--sizes", "2", "--workloads", "random", "--out", "results", "--json",
        cwd=measured.parent,
    )  # fmt: skip
    assert json.loads(out.stdout)["cells"].keys() == {"random/2/8"}
    assert (measured / "results.json").read_bytes() == before


def test_options_without_sense_are_refused(tmp_path: Path) -> None:
    assert "--sizes are among" in sentence("bench", "search", "--sizes", "5", cwd=tmp_path)
    assert "--powers must be" in sentence("bench", "search", "--powers", "40", cwd=tmp_path)
    (tmp_path / "results.json").write_text("{}")
    assert "holds other results" in sentence("bench", "search", "--quick", "--out", ".", cwd=tmp_path)

"""What results conclude from runs: nothing from none, first passages, verdicts on p-values, the lemma's formulas."""

from dataclasses import replace

import numpy as np
import pytest

from twotower.experiments import RESULTS, estimator_error, get
from twotower.experiments.curves import thinned
from twotower.experiments.plan import Choice, Planned, base
from twotower.experiments.records import Finished
from twotower.experiments.result import Evidence
from twotower.experiments.t_tests import _verdict
from twotower.experiments.thresholds import steps_to
from twotower.runs import Evaluation, PolicyFile
from twotower.training import build


@pytest.mark.parametrize("name", [name for name in RESULTS if name != "estimator-error"])
def test_without_runs_every_cell_says_so(name: str) -> None:
    result = get(name)
    plan = result.plan(Choice("paper", workers=2))
    for table in result.conclude(Evidence(Choice("paper", workers=2), plan, [])).tables:
        assert table.rows, name
        for row in table.rows:
            assert len(row) == len(table.headings) and any("not run" in cell for cell in row), (name, row)


def test_steps_to_a_threshold_count_all_steps() -> None:
    rows = [{"steps": 10.0, "return": 1.0}, {"steps": 20.0, "return": 5.0}, {"steps": 30.0, "return": 9.0}]
    assert [steps_to(rows, value) for value in (0.0, 5.0, 6.0, 10.0)] == [10, 20, 30, None]


def test_sides_of_the_level() -> None:
    assert _verdict(0.01, 0.049, False) == "same side" and _verdict(0.01, 0.051, False) == "other side"
    assert _verdict(0.2, 0.9, True) == "same side (cut)" and _verdict(float("nan"), 0.1, False) == "nothing printed"


def test_curves_are_thinned_evenly_and_keep_their_ends() -> None:
    assert thinned(5).tolist() == [0, 1, 2, 3, 4] and thinned(1).tolist() == [0]
    kept = thinned(4000)
    assert len(kept) == 200 and kept[0] == 0 and kept[-1] == 3999 and set(np.diff(kept)) <= {20, 21}


def test_formulas_by_hand() -> None:
    """g = (1, 1), H = diag(2, 0), D = M = 2, σ = 1: linear (4/2)·2 − 2 = 2; curved 6/8·(4 + 8) = 9."""
    right, printed = estimator_error.formulas(
        "forward difference", 2, 2, 1.0, np.ones(2), np.array([[2.0, 0.0], [0.0, 0.0]])
    )
    assert right == pytest.approx(2 + 9) and printed == pytest.approx(2 + 6 / 8 * 4 + 4 / 2 * 4)
    same = estimator_error.formulas("antithetic", 2, 2, 1.0, np.ones(2), np.eye(2))
    assert same == pytest.approx((2.0, 2.0))


def test_estimator_errors_find_the_erratum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(estimator_error.DRAWS, "quick", 400)
    table = estimator_error.conclude(Evidence(Choice(), [], [])).tables[0]
    assert all(row[-1] == "holds" for row in table.rows)
    assert sum(row[-2].startswith("off by") for row in table.rows) >= 4


def finished(seed: int, iterations: int, planned: int = 9) -> Finished:
    config = base("cartpole", "itt", seed, iterations=planned)
    spec = build(config).spec
    policy = PolicyFile(np.zeros(6), config, spec, iterations, 100, Evaluation((1.0,), seed))
    return Finished(Planned(config), "", policy, {})


@pytest.mark.parametrize(
    ("lengths", "chosen"),
    [
        ([9, 9, 9, 9], [9, 9, 9, 9]),
        ([5, 5, 5, 9], [5, 5, 5]),  # one seed went on longer: three of one length tell more
        ([5, 9, 9, 9], [9, 9, 9]),
        ([5, 5], [5, 5]),
        ([], []),
    ],
)
def test_a_cell_takes_runs_of_one_length(lengths: list[int], chosen: list[int]) -> None:
    runs = [finished(seed, length) for seed, length in enumerate(lengths)]
    plan = [Planned(replace(base("cartpole"), seed=seed)) for seed in range(10)]
    found = Evidence(Choice("paper"), plan, runs).of("cartpole")
    assert [run.iterations for run in found] == chosen
    assert all(run.cut == (run.iterations < 9) for run in found)

"""Returns at equal wall-clock, worked out by hand."""

import numpy as np

from twotower.experiments.plan import Choice, Planned
from twotower.experiments.records import Finished
from twotower.experiments.result import Evidence
from twotower.experiments.search_return import STEPS, VARIANTS, conclude, plan
from twotower.runs import Evaluation, PolicyFile
from twotower.training import build

# Seconds for a million steps, and the return after them, to which it rises in a straight line.
SPEED = dict(zip(VARIANTS, (100.0, 100.0, 400.0, 200.0, 200.0), strict=True))
END = dict(zip(VARIANTS, (50.0, 50.0, 300.0, 60.0, 120.0), strict=True))


def finished(planned: Planned) -> Finished:
    variant = planned.variant.removesuffix(", timed")
    rows = 6 if planned.timed else 100
    steps = np.arange(1, rows + 1) * STEPS // 100
    columns = {
        "steps": steps.tolist(),
        "seconds": (steps / STEPS * SPEED[variant]).tolist(),
        "return": (steps / STEPS * END[variant] + planned.config.seed).tolist(),
    }
    spec = build(planned.config).spec
    policy = PolicyFile(np.zeros(1), planned.config, spec, rows, int(steps[-1]), Evaluation((END[variant],), 0))
    return Finished(planned, planned.name, policy, columns)


def test_half_as_fast_is_half_as_far_at_equal_time() -> None:
    choice = Choice("paper", tasks=("swimmer",), workers=2)
    runs = [finished(planned) for planned in plan(choice)]
    findings = conclude(Evidence(choice, plan(choice), runs))
    assert set(findings.figures) == {"search-return-steps", "search-return-time"}
    rows = {row[1]: row for row in findings.tables[0].rows}
    assert [row[2] for row in rows.values()] == ["10,000", "10,000", "2,500", "5,000", "5,000"]
    assert [row[4] for row in rows.values()] == ["1.67", "1.67", "6.67", "3.33", "3.33"]  # minutes
    # After 100 s the variants have 1, 1, 1/4, 1/2 and 1/2 of their steps; smoothing takes two iterations off; seed 1.
    assert [row[5].split()[0] for row in rows.values()] == ["50.00", "50.00", "70.00", "29.80", "58.60"]
    assert all(row[5].endswith("after 1.67 minutes") for row in rows.values())
    assert [row[6] for row in rows.values()] == ["", "no difference", "more", "less", "more"]

"""θ after five iterations is the same bits from serial, two processes, and 1, 2 and 4 actors on two Ray nodes."""

from pathlib import Path
from typing import Any

import pytest

from tests.training.runs import SMALL, new_folder, result, train_on
from twotower.api import merged
from twotower.training import task_config

REFRESHES: dict[str, dict[str, Any]] = {
    "step": {},
    "step, lazy": {"strategy": {"lazy": 2}},
    "iteration": {"candidates": {"refresh": "iteration"}},
    "iteration, lazy": {"candidates": {"refresh": "iteration"}, "strategy": {"lazy": 2}},
}
TASKS: dict[str, dict[str, Any]] = {
    "swimmer": {},
    "hopper": {},
    "lunarlander": {},
    "fish-swim": {},
    "Pendulum-v1": {"env": {"backend": "gymnasium"}},
}
WHO = (("serial", 1), ("processes", 2), ("ray", 1), ("ray", 2), ("ray", 4))


@pytest.mark.slow
@pytest.mark.parametrize("refresh", REFRESHES)
@pytest.mark.parametrize("task", TASKS)
def test_a_cluster_changes_no_bit(task: str, refresh: str, cluster: Any, tmp_path: Path) -> None:
    config = merged(merged(merged(task_config(task), SMALL | {"iterations": 5}), TASKS[task]), REFRESHES[refresh])
    results = []
    for executor, workers in WHO:
        run = merged(config, {"executor": executor, "workers": workers, "env": {"max_episode_steps": 25}})
        folder = new_folder(run, tmp_path / f"{executor}-{workers}")
        train_on(folder)
        results.append(result(folder))
    assert len(results[0][1]) == 5
    for other in results[1:]:
        assert other == results[0]

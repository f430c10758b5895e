"""θ after five iterations is the same bits from serial, two processes, and 1, 2 and 4 actors on two Ray nodes."""

from pathlib import Path
from typing import Any

import pytest

from tests.slow.bits import REFRESHES, TASKS, WHO, is_equal, outcomes


@pytest.mark.slow
@pytest.mark.parametrize("refresh", REFRESHES)
@pytest.mark.parametrize("task", TASKS)
def test_a_cluster_changes_no_bit(task: str, refresh: str, cluster: Any, tmp_path: Path) -> None:
    who = outcomes(task, refresh, tmp_path)
    assert set(who) == set(WHO) and is_equal({"who": who}), who

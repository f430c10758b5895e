"""`kill -9` at twenty random instants for every kind of schedule."""

from pathlib import Path

import pytest

from tests.training.kills import finish_killing
from tests.training.runs import variant

NAMES = (
    "hopper, step",
    "hopper, rollout, lazy",
    "hopper, iteration, lazy by chance",
    "hopper, fixed",
    "lunarlander, step",
    "lunarlander, iteration, lazy",
)


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["serial", "processes"])
@pytest.mark.parametrize("name", NAMES)
def test_twenty_kills_change_no_bit(name: str, executor: str, tmp_path: Path) -> None:
    config = variant(name, iterations=300, executor=executor, workers=2)
    assert finish_killing(config, tmp_path, kills=20, seed=len(name)) == 20

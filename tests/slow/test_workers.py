"""θ after five iterations for 1, 2 and 4 workers, serial or processes, on EnvPool and Gymnasium slots."""

from pathlib import Path

import pytest

from tests.training.runs import VARIANTS, same_for_all_workers


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in VARIANTS if name != "cartpole"])
def test_workers_change_no_bit(name: str, tmp_path: Path) -> None:
    same_for_all_workers(name, tmp_path)


@pytest.mark.slow
def test_workers_change_no_bit_on_gymnasium_slots(tmp_path: Path) -> None:
    pytest.importorskip("mujoco")
    same_for_all_workers("hopper, step", tmp_path, env={"backend": "gymnasium"})

"""A run that was interrupted, however often and wherever, ends with the bits of one that was not."""

from pathlib import Path

import numpy as np
import pytest

from tests.training.runs import VARIANTS, Died, new_folder, result, train_on, variant
from twotower.errors import UserError
from twotower.randomness import generator
from twotower.runs import Checkpoint, read_metrics


def whole_run(name: str, path: Path) -> tuple:
    folder = new_folder(variant(name), path)
    train_on(folder)
    return result(folder)


@pytest.mark.parametrize("checkpoint_seconds", [0.0, 1e6])
@pytest.mark.parametrize("name", VARIANTS)
def test_dying_between_checkpoints_changes_nothing(name: str, checkpoint_seconds: float, tmp_path: Path) -> None:
    """The last iteration before a death is lost with seconds = 0, all of them otherwise."""
    config = variant(name, checkpoint_seconds=checkpoint_seconds)
    folder = new_folder(config, tmp_path / "broken")
    iterations = config.iterations or 0
    deaths = sorted({1, 2, *generator(1).integers(1, iterations + 1, 3).tolist(), iterations - 2})
    for stop_after in deaths:
        with pytest.raises(Died):
            train_on(folder, stop_after)
        saved = Checkpoint.load(folder.checkpoint).iteration
        assert saved == (stop_after - 1 if checkpoint_seconds == 0 else 0)
        assert len(read_metrics(folder.metrics)) == stop_after  # more than the checkpoint knows of
    train_on(folder)
    assert result(folder) == whole_run(name, tmp_path / "whole")


@pytest.mark.parametrize("name", ["hopper, step", "lunarlander, step", "world"])
def test_a_requested_stop_ends_with_a_checkpoint_of_that_iteration(name: str, tmp_path: Path) -> None:
    from twotower.training import Trainer, build

    folder = new_folder(variant(name, checkpoint_seconds=1e6), tmp_path / "stopped")
    for stop_after in (2, 3, 5):
        trainer = Trainer(build(folder.read_config()), folder)

        def report(row: dict, trainer: Trainer = trainer, stop_after: int = stop_after) -> None:
            trainer.stop_requested = row["iteration"] == stop_after

        trainer.run(report)
        assert Checkpoint.load(folder.checkpoint).iteration == len(read_metrics(folder.metrics)) == stop_after
    train_on(folder)
    assert result(folder) == whole_run(name, tmp_path / "whole")


def test_runs_differ_where_they_should(tmp_path: Path) -> None:
    """What the comparisons above would see if resuming lost something."""
    thetas = set()
    for name in VARIANTS:
        folder = new_folder(variant(name), tmp_path / name)
        train_on(folder)
        rows = read_metrics(folder.metrics)
        assert len({row["population_mean"] for row in rows}) > 1
        thetas.add(Checkpoint.load(folder.checkpoint).theta.tobytes())
    assert len(thetas) == len(VARIANTS)


def test_a_checkpoint_of_another_architecture_is_refused(tmp_path: Path) -> None:
    folder = new_folder(variant("world"), tmp_path / "run")
    train_on(folder)
    checkpoint = Checkpoint.load(folder.checkpoint)
    checkpoint._replace(theta=np.ones(3), best_theta=np.ones(3)).save(folder.checkpoint)
    with pytest.raises(UserError, match="belongs to another configuration"):
        train_on(folder)


@pytest.mark.parametrize("damage", ["truncated", "foreign", "metrics"])
def test_damage_to_a_stopped_run_is_said_in_a_sentence(damage: str, tmp_path: Path) -> None:
    folder = new_folder(variant("world", checkpoint_seconds=0.0), tmp_path / "run")
    with pytest.raises(Died):
        train_on(folder, 3)
    if damage == "metrics":
        folder.metrics.write_bytes(folder.metrics.read_bytes()[:20])
    else:
        whole = folder.checkpoint.read_bytes()
        folder.checkpoint.write_bytes(whole[:-9] if damage == "truncated" else b"PK" + whole)
    with pytest.raises(UserError) as caught:
        train_on(folder)
    assert ("metrics.jsonl" if damage == "metrics" else "checkpoint.safetensors") in str(caught.value)

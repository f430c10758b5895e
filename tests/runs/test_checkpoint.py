"""A checkpoint comes back bit for bit, and only a sound one is written or read."""

from pathlib import Path

import numpy as np
import pytest

from twotower.errors import UserError
from twotower.files import sealed_file
from twotower.runs import Checkpoint

CHECKPOINT = Checkpoint(
    theta=np.array([1 / 3, -0.0, 5e-324]),
    iteration=12,
    episodes=np.array([3, 0], dtype=np.int64),
    steps=2**53 + 1,
    best=-np.inf,
    best_theta=np.array([1.0, 2.0, 3.0]),
    seconds=0.1,
    metrics_bytes=99,
    memory=np.array([[0.1, -0.0, 1e300], [1.0, 2.0, 3.0]]),
    observations=2**40,
    observation_mean=np.array([1 / 3, 7.0]),
    observation_squares=np.array([0.0, 5e-324]),
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "checkpoint.safetensors"


def test_round_trip_is_exact(path: Path) -> None:
    CHECKPOINT.save(path)
    loaded = Checkpoint.load(path)
    for name, value in CHECKPOINT._asdict().items():
        found = getattr(loaded, name)
        if isinstance(value, np.ndarray):
            assert found.dtype == value.dtype and found.tobytes() == value.tobytes()
            assert found.flags.writeable
        else:
            assert type(found) is type(value) and found == value


def test_a_run_without_memory_or_normaliser_has_empty_ones(path: Path) -> None:
    empty = {"memory": np.zeros((0, 3)), "observation_mean": np.zeros(0), "observation_squares": np.zeros(0)}
    CHECKPOINT._replace(observations=0, **empty).save(path)
    loaded = Checkpoint.load(path)
    assert loaded.memory.shape == (0, 3) and loaded.moments.mean.shape == (0,) and loaded.moments.seen == 0


def test_python_and_numpy_numbers_of_any_kind_are_stored_as_the_field_says(path: Path) -> None:
    CHECKPOINT._replace(best=3, seconds=0, iteration=np.int32(4), episodes=np.zeros(2, np.int32)).save(path)  # pyright: ignore[reportArgumentType]
    loaded = Checkpoint.load(path)
    assert (loaded.best, loaded.seconds, loaded.iteration) == (3.0, 0.0, 4)
    assert type(loaded.best) is float and type(loaded.iteration) is int and loaded.episodes.dtype == np.int64


BAD = [
    {"theta": np.array([np.nan, 0.0, 0.0])},
    {"best_theta": np.array([np.inf, 0.0, 0.0])},
    {"best_theta": np.zeros(2)},
    {"best": np.nan},
    {"seconds": np.inf},
    {"iteration": -1},
    {"episodes": np.array([1, -1])},
    {"theta": np.empty(0), "best_theta": np.empty(0)},
    {"memory": np.full((1, 3), np.nan)},
    {"observations": -1},
    {"observation_mean": np.array([np.inf, 0.0])},
    {"observation_mean": np.zeros(3)},
    {"observation_squares": np.array([-1.0, 0.0])},
    {"observation_squares": np.array([np.nan, 0.0])},
]


@pytest.mark.parametrize("change", BAD)
def test_unsound_numbers_are_neither_written_nor_read(path: Path, change: dict[str, object]) -> None:
    CHECKPOINT.save(path)
    bad = CHECKPOINT._replace(**change)  # pyright: ignore[reportArgumentType]
    with pytest.raises(UserError, match="last good"):
        bad.save(path)
    assert Checkpoint.load(path).steps == CHECKPOINT.steps
    sealed_file.save(path, "checkpoint", {name: np.asarray(value) for name, value in bad._asdict().items()})
    with pytest.raises(UserError, match="no run could have"):
        Checkpoint.load(path)


@pytest.mark.parametrize(
    "change",
    [{"theta": np.zeros((1, 3))}, {"steps": np.asarray(1.0)}, {"seconds": np.zeros(1)}, {"extra": np.zeros(1)}],
)
def test_wrong_fields_are_refused(path: Path, change: dict[str, np.ndarray]) -> None:
    tensors = {name: np.asarray(value) for name, value in CHECKPOINT._asdict().items()}
    sealed_file.save(path, "checkpoint", tensors | change)
    with pytest.raises(UserError, match="fields of a checkpoint"):
        Checkpoint.load(path)
    del tensors["best"]
    sealed_file.save(path, "checkpoint", tensors)
    with pytest.raises(UserError, match="fields of a checkpoint"):
        Checkpoint.load(path)

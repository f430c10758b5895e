"""The log is only appended to, survives being cut anywhere, and is always JSON."""

import json
import resource
from pathlib import Path

import numpy as np
import pytest

from twotower.errors import UserError
from twotower.runs import MetricsLog, read_metrics


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "metrics.jsonl"


def refuse_constant(name: str) -> None:
    raise AssertionError(f"{name} is not JSON")


def test_rows_come_back_and_numbers_that_are_not_finite_are_null(path: Path) -> None:
    log = MetricsLog(path)
    log.append({"iteration": np.int64(0), "return": np.float64(1 / 3), "best": -np.inf, "sigma": np.float32("nan")})
    log.append({"iteration": 1, "return": 2.0, "best": 2.0, "sigma": 1.0})
    log.close()
    rows = [json.loads(line, parse_constant=refuse_constant) for line in path.read_text().splitlines()]
    assert rows == read_metrics(path)
    assert rows[0] == {"iteration": 0, "return": 1 / 3, "best": None, "sigma": None}
    assert rows[1]["return"] == 2.0


def test_a_row_is_in_the_file_when_append_returns(path: Path) -> None:
    log = MetricsLog(path)
    log.append({"iteration": 0})
    assert read_metrics(path) == [{"iteration": 0}]
    log.close()


def test_resuming_cuts_back_to_the_checkpoint(path: Path) -> None:
    log = MetricsLog(path)
    log.append({"iteration": 0})
    committed = log.commit()
    assert committed == path.stat().st_size
    log.append({"iteration": 1, "lost": True})
    log.close()
    resumed = MetricsLog(path, committed)
    resumed.append({"iteration": 1})
    assert resumed.commit() == path.stat().st_size
    resumed.close()
    assert read_metrics(path) == [{"iteration": 0}, {"iteration": 1}]


def test_a_log_shorter_than_its_checkpoint_is_refused_and_kept(path: Path) -> None:
    path.write_text('{"iteration": 0}\n')
    with pytest.raises(UserError, match="shorter"):
        MetricsLog(path, 1000)
    assert read_metrics(path) == [{"iteration": 0}]


def test_a_torn_last_line_is_left_out_wherever_it_was_cut(path: Path) -> None:
    first, second = b'{"iteration": 0}\n', b'{"iteration": 1, "name": "\xcf\x80"}\n'
    for cut in range(len(second)):
        path.write_bytes(first + second[:cut])
        assert read_metrics(path) == [{"iteration": 0}]
    path.write_bytes(first + second)
    assert len(read_metrics(path)) == 2


@pytest.mark.parametrize("line", [b"{", b"[1]", b"\xff", b"", b"[" * 100_000])
def test_damage_inside_names_the_line(path: Path, line: bytes) -> None:
    path.write_bytes(b'{"iteration": 0}\n' + line + b'\n{"iteration": 2}\n')
    with pytest.raises(UserError, match="line 2"):
        read_metrics(path)


def test_missing_is_empty_and_unreadable_says_why(path: Path) -> None:
    assert read_metrics(path) == []
    with pytest.raises(UserError, match="Is a directory"):
        read_metrics(path.parent)
    with pytest.raises(UserError, match="Is a directory"):
        MetricsLog(path.parent)
    with pytest.raises(UserError, match="No such file"):
        MetricsLog(path / "x" / "metrics.jsonl")


def test_a_full_disk_leaves_no_part_of_a_line(path: Path) -> None:
    log = MetricsLog(path)
    log.append({"iteration": 0})
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (40, hard))
    try:
        with pytest.raises(UserError, match="metrics.jsonl: File too large"):
            log.append({"iteration": 1, "filler": "x" * 100})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    log.append({"iteration": 1})
    log.close()
    assert read_metrics(path) == [{"iteration": 0}, {"iteration": 1}]

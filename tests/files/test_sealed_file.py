"""Whatever bytes a file holds, loading it gives what was saved or one UserError."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from twotower.errors import UserError
from twotower.files import atomic, sealed_file

TENSORS = {
    "floats": np.arange(3, dtype=np.float32),
    "theta": np.arange(5.0),
    "scalar": np.asarray(7),
    "empty": np.empty((0, 3)),
    "whole": np.arange(3, dtype=np.int32),
}
TEXT = json.dumps({"name": "π\ud800", "nested": {"a": [1, None]}})
fuzz = settings(
    max_examples=300, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "file.safetensors"
    sealed_file.save(path, "policy", TENSORS, TEXT)
    return path


def load_bytes(path: Path, data: bytes) -> sealed_file.Contents:
    path.write_bytes(data)
    return sealed_file.load(path, "policy")


def reseal(path: Path, header: object, body: bytes = b"") -> None:
    """Write a file whose checksum is right however wrong the rest is."""
    encoded = header if isinstance(header, bytes) else json.dumps(header).encode()
    length = len(encoded).to_bytes(8, "little")
    checksum = sealed_file._checksum(length, encoded, body)
    path.write_bytes(length + encoded.replace(b"0" * 64, checksum.encode(), 1) + body)


def header(**entries: object) -> dict[str, object]:
    metadata = {"format": "twotower.policy", "version": "1", "checksum": "0" * 64, "text": ""}
    return {"__metadata__": metadata, **entries}


def test_round_trip_and_any_safetensors_reader_can_read_it(path: Path) -> None:
    tensors, text = sealed_file.load(path, "policy")
    assert text == TEXT
    assert safetensors.numpy.load_file(path).keys() == tensors.keys() == TENSORS.keys()
    for name, array in safetensors.numpy.load_file(path).items():
        for loaded in (array, tensors[name]):
            np.testing.assert_array_equal(loaded, TENSORS[name], strict=True)


def test_the_same_contents_give_the_same_bytes(path: Path) -> None:
    before = path.read_bytes()
    sealed_file.save(path, "policy", TENSORS, TEXT)
    assert path.read_bytes() == before


def test_no_flipped_bit_loads(path: Path) -> None:
    data = path.read_bytes()
    for position in range(len(data) * 8):
        flipped = bytearray(data)
        flipped[position // 8] ^= 1 << position % 8
        with pytest.raises(UserError):
            load_bytes(path, bytes(flipped))


def test_no_truncated_or_extended_file_loads(path: Path) -> None:
    data = path.read_bytes()
    for size in range(len(data)):
        with pytest.raises(UserError):
            load_bytes(path, data[:size])
    for tail in (b"\0", b" " * 8, data):
        with pytest.raises(UserError):
            load_bytes(path, data + tail)


@fuzz
@given(st.binary(max_size=300))
@example(b"")
@example((2**64 - 1).to_bytes(8, "little") + b"{}")
@example((2**40).to_bytes(8, "little") + b"{" * 100)
@example((100_000).to_bytes(8, "little") + b"[" * 100_000)
def test_random_bytes(path: Path, data: bytes) -> None:
    with pytest.raises(UserError):
        load_bytes(path, data)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["F64", "I64", "BF16"]),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
SIZES = st.lists(st.integers(-1, 2**70) | st.integers(0, 4) | JSON, max_size=3)
ENTRY = JSON | st.fixed_dictionaries(
    {"dtype": st.sampled_from(["F64", "I64", "F32"]) | JSON, "shape": SIZES | JSON, "data_offsets": SIZES | JSON}
)


@fuzz
@given(ENTRY, st.binary(max_size=64))
@example({"dtype": "F64", "shape": [2**62, 4], "data_offsets": [0, 0]}, b"")
@example({"dtype": "F64", "shape": [0] * 100, "data_offsets": [0, 0]}, b"")
@example({"dtype": "F64", "shape": [-1, -1], "data_offsets": [0, 8]}, b"\0" * 8)
@example({"dtype": "F64", "shape": [True], "data_offsets": [0, 8]}, b"\0" * 8)
@example({"dtype": "F64", "shape": [1], "data_offsets": [8, 16]}, b"\0" * 16)
@example({"dtype": "F64", "shape": [1], "data_offsets": [0, 8]}, b"\0" * 16)
@example({"dtype": "F64", "shape": [2], "data_offsets": [0, 16]}, b"\0" * 8)
def test_crafted_tensors_never_reach_beyond_the_file(path: Path, entry: object, body: bytes) -> None:
    reseal(path, header(theta=entry), body)
    try:
        tensors = sealed_file.load(path, "policy").tensors
    except UserError:
        return
    assert sum(tensor.nbytes for tensor in tensors.values()) == len(body)


def test_offsets_that_overlap_are_refused(path: Path) -> None:
    entry = {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]}
    reseal(path, header(theta=entry, more=entry | {"data_offsets": [0, 16]}), b"\0" * 16)
    with pytest.raises(UserError):
        sealed_file.load(path, "policy")


def test_missing_text_is_refused(path: Path) -> None:
    crafted = header()
    del crafted["__metadata__"]["text"]  # pyright: ignore[reportIndexIssue]
    reseal(path, crafted)
    with pytest.raises(UserError):
        sealed_file.load(path, "policy")


def test_a_small_file_cannot_claim_much_memory(path: Path) -> None:
    path.write_bytes(sealed_file.MAX_HEADER.to_bytes(8, "little") + b"{}")
    tracemalloc.start()
    with pytest.raises(UserError):
        sealed_file.load(path, "policy")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**20


def test_the_crafting_itself_works(path: Path) -> None:
    reseal(path, header(theta={"dtype": "F64", "shape": [2], "data_offsets": [0, 16]}), np.ones(2).tobytes())
    np.testing.assert_array_equal(sealed_file.load(path, "policy").tensors["theta"], [1, 1])


@fuzz
@given(JSON)
def test_crafted_metadata(path: Path, value: object) -> None:
    for key in ("format", "version", "checksum", "text"):
        crafted = header()
        crafted["__metadata__"][key] = value  # pyright: ignore[reportIndexIssue]
        reseal(path, crafted)
        try:
            sealed_file.load(path, "policy")
        except UserError:
            continue
        assert key == "text" and isinstance(value, str)


def test_newer_format_says_upgrade(path: Path) -> None:
    crafted = header()
    crafted["__metadata__"]["version"] = "2"  # pyright: ignore[reportIndexIssue]
    reseal(path, crafted)
    with pytest.raises(UserError, match="newer twotower.*pip install -U twotower"):
        sealed_file.load(path, "policy")


def test_foreign_files_are_named(path: Path) -> None:
    safetensors.numpy.save_file({"weight": np.ones(3)}, path, {"format": "pt"})
    with pytest.raises(UserError, match="another program's"):
        sealed_file.load(path, "policy")
    sealed_file.save(path, "checkpoint", TENSORS)
    with pytest.raises(UserError, match="twotower checkpoint"):
        sealed_file.load(path, "policy")


def test_a_huge_foreign_file_is_refused_unread(path: Path) -> None:
    safetensors.numpy.save_file({"weight": np.ones(3)}, path)
    os.truncate(path, 2**42)  # sparse: takes no room on the disk
    with pytest.raises(UserError):
        sealed_file.load(path, "policy")


def test_paths_that_are_no_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, words in (
        (tmp_path / "missing", "No such file"),
        (tmp_path, "directory"),
        (tmp_path / "pipe", "not a regular file"),
        (tmp_path / ("x" * 300), "too long"),
    ):
        with pytest.raises(UserError, match=words):
            sealed_file.load(path, "policy")


def test_unwritable_place_names_path_and_reason(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="file/x.safetensors: Not a directory"):
        sealed_file.save(tmp_path / "file" / "x.safetensors", "policy", TENSORS)


def test_a_full_disk_leaves_the_old_file_and_nothing_else(path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        with pytest.raises(UserError, match="Cannot write .*file.safetensors: File too large"):
            sealed_file.save(path, "policy", {})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert sealed_file.load(path, "policy").text == TEXT
    assert list(path.parent.iterdir()) == [path]


WRITER = """
import sys
from pathlib import Path
import numpy as np
from twotower.files import sealed_file
path = Path(sys.argv[1])
for k in range(10**9):
    sealed_file.save(path, "policy", {"theta": np.full(200_000, float(k))}, str(k))
"""


def test_kill_at_any_instant_leaves_a_whole_file(path: Path) -> None:
    random = np.random.default_rng(0)
    for _ in range(6):
        path.unlink()
        with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], cwd=Path(__file__).parents[2]) as writer:
            while not path.exists():
                time.sleep(0.005)
            time.sleep(random.uniform(0, 0.05))
            writer.send_signal(signal.SIGKILL)
        tensors, text = sealed_file.load(path, "policy")
        assert (tensors["theta"] == float(text)).all()
        (path.parent / atomic._ASIDE.format("left")).touch()
        atomic.remove_leftovers(path.parent)
        assert list(path.parent.iterdir()) == [path]

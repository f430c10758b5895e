"""The log of a run: one JSON object a line, one line an iteration, only ever appended to."""

import contextlib
import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from twotower.errors import UserError
from twotower.files.atomic import reason


class MetricsLog:
    """An open log; a line is in the file, whole, when `append` returns."""

    def __init__(self, path: Path, length: int = 0) -> None:
        """Open the log and cut it back to `length` bytes, a checkpoint's `metrics_bytes`."""
        self.path = path
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
            found = os.fstat(self._descriptor).st_size
            if found < length:
                os.close(self._descriptor)
                raise UserError(
                    f"{path} is shorter ({found} bytes) than its checkpoint says ({length}): "
                    "put the original back, or train anew in another folder."
                )
            os.ftruncate(self._descriptor, length)
        except OSError as error:
            raise UserError(f"Cannot write {path}: {reason(error)}.") from error
        self._length = length

    def append(self, row: Mapping[str, Any]) -> None:
        """Write one row; numbers that are not finite become null."""
        line = (json.dumps({key: _plain(value) for key, value in row.items()}, allow_nan=False) + "\n").encode()
        written = 0
        try:
            while written < len(line):
                written += os.write(self._descriptor, line[written:])
        except OSError as error:
            # A full disk takes part of a line: leave none of it.
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, self._length)
            raise UserError(f"Cannot write {self.path}: {reason(error)}.") from error
        self._length += len(line)

    def commit(self) -> int:
        """Flush the log to disk and return its length, for a checkpoint's `metrics_bytes`."""
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            raise UserError(f"Cannot write {self.path}: {reason(error)}.") from error
        return self._length

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


def _plain(value: Any) -> Any:
    """A value as JSON has it: NumPy scalars unwrapped, numbers that are not finite as null."""
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and not math.isfinite(value) else value


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """All whole rows of a log; a log not begun has none, and a torn last line is left out."""
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise UserError(f"Cannot read {path}: {reason(error)}.") from error
    rows = []
    for number, line in enumerate(lines[:-1], start=1):  # what follows the last newline is torn, or nothing
        try:
            row = json.loads(line.decode("utf-8"))
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict):
            raise UserError(f"{path} is damaged at line {number}: remove that line, or put the original back.")
        rows.append(row)
    return rows

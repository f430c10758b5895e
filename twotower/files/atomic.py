"""Whole-file writes that happen entirely or not at all."""

import contextlib
import os
from pathlib import Path
from uuid import uuid4

from twotower.errors import UserError

_ASIDE = ".twotower-{}.tmp"


def reason(error: OSError) -> str:
    """The operating system's words for what went wrong."""
    return error.strerror or str(error)


def write_atomically(path: Path, data: bytes) -> None:
    """Write aside in the same folder, flush to disk, rename: a reader sees the old file or the new one."""
    aside = path.with_name(_ASIDE.format(uuid4().hex))
    try:
        with open(aside, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
    except OSError as error:
        raise UserError(f"Cannot write {path}: {reason(error)}.") from error
    finally:
        with contextlib.suppress(OSError):
            aside.unlink(missing_ok=True)
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    # The rename has happened; file systems that cannot sync a folder only lose the guarantee against power loss.
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def remove_leftovers(folder: Path) -> None:
    """Remove what writers that were killed left behind."""
    for leftover in folder.glob(_ASIDE.format("*")):
        with contextlib.suppress(OSError):
            leftover.unlink()

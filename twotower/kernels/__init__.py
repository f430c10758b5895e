"""Numba twins of the NumPy references, compiled once and kept beside the sources."""

import contextlib
from pathlib import Path
from typing import Any

import llvmlite.binding
from numba.core import config


def _drop_stale(folder: Path) -> None:
    """Remove compiled kernels older than any kernel's source.

    Numba looks only at the file of the function it has cached, not at the files of what that function calls.
    """
    newest = max(source.stat().st_mtime for source in folder.glob("*.py"))
    for index in folder.glob("__pycache__/*.nbi"):
        with contextlib.suppress(OSError):
            if index.stat().st_mtime < newest:
                index.unlink()


def _prefer_wide_vectors() -> None:
    """Let kernels use 512-bit vectors, which LLVM leaves aside by default (0.8 of the time for one-tower policies).

    No kernel's result depends on the width: sums run in an order that the source fixes.
    """
    settings: Any = config  # filled in when Numba starts, so no type checker knows its names
    if settings.CPU_NAME is None and settings.CPU_FEATURES is None:
        settings.CPU_NAME = llvmlite.binding.get_host_cpu_name()
        settings.CPU_FEATURES = f"{llvmlite.binding.get_host_cpu_features().flatten()},-prefer-256-bit"


_drop_stale(Path(__file__).parent)
_prefer_wide_vectors()

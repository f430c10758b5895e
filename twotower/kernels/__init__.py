"""Numba twins of the NumPy references, compiled once and kept beside the sources."""

import contextlib
from pathlib import Path

import llvmlite.binding
import numba


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
    if numba.config.CPU_NAME is None and numba.config.CPU_FEATURES is None:  # pyright: ignore[reportAttributeAccessIssue]
        numba.config.CPU_NAME = llvmlite.binding.get_host_cpu_name()
        numba.config.CPU_FEATURES = f"{llvmlite.binding.get_host_cpu_features().flatten()},-prefer-256-bit"


_drop_stale(Path(__file__).parent)
_prefer_wide_vectors()

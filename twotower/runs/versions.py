"""What made a result: the versions and the machine its bits may depend on."""

import contextlib
import platform
from importlib import metadata
from pathlib import Path

PACKAGES = ("twotower", "numpy", "numba", "scipy", "gymnasium", "envpool", "mujoco", "dm_control")


def versions() -> dict[str, str]:
    """Versions of Python and of the packages installed here, and the kind of machine."""
    found = {"python": platform.python_version(), "platform": platform.platform(), "machine": platform.machine()}
    found["cpu"] = _cpu()
    for package in PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found


def _cpu() -> str:
    """The processor's model, which Python itself does not know on Linux."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()

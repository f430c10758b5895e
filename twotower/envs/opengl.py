"""MuJoCo's pictures without a screen: which OpenGL draws them, how coarsely, and where the camera is."""

import contextlib
import os
import subprocess
import sys
from importlib.util import find_spec
from typing import Any

INSTALL_OPENGL = "apt-get install libegl1 libgl1-mesa-dri (or: apt-get install libosmesa6)"
SHADOW_SIZE = 1024
_PROBE = """
import mujoco
context = mujoco.GLContext(8, 8)
context.make_current()
mujoco.MjrContext(mujoco.MjModel.from_xml_string("<mujoco/>"), mujoco.mjtFontScale.mjFONTSCALE_100).free()
context.free()
"""


def choose_opengl() -> bool:
    """Have MuJoCo draw with the first OpenGL that works here, or the one MUJOCO_GL names; whether one does.

    It must come before mujoco or dm_control is imported: they read MUJOCO_GL then.
    """
    if find_spec("mujoco") is None:
        return True
    asked = os.environ.get("MUJOCO_GL")
    for name in [asked] if asked else ["egl", "osmesa", "glfw"]:
        # In a process of its own: a library that is missing leaves mujoco half imported.
        environment = os.environ | {"MUJOCO_GL": name}
        if not subprocess.run([sys.executable, "-c", _PROBE], env=environment, capture_output=True).returncode:
            os.environ["MUJOCO_GL"] = name
            return True
    os.environ["MUJOCO_GL"] = "disable"
    return False


def cheapen(model: Any) -> None:
    """Coarser shadows and unsmoothed edges: without a GPU these take most of a picture's time."""
    if hasattr(model, "vis"):
        model.vis.quality.shadowsize = min(model.vis.quality.shadowsize, SHADOW_SIZE)
        model.vis.quality.offsamples = 0


def follow(environment: Any) -> None:
    """Look through a Gymnasium model's own tracking camera, which Gymnasium 1.4 leaves aside."""
    renderer = getattr(environment, "mujoco_renderer", None)
    if renderer is not None and renderer.camera_id == -1 and "trackbodyid" not in (renderer.default_cam_config or {}):
        with contextlib.suppress(KeyError):
            renderer.camera_id = environment.model.camera("track").id

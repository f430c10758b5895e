"""Frames in, an mp4 or gif out, through the ffmpeg that imageio-ffmpeg brings."""

import contextlib
import math
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import IO

import numpy as np

from twotower.errors import UserError
from twotower.files.atomic import reason

DITHER = "paletteuse=dither=bayer:bayer_scale=5"
ARGUMENTS = {
    ".mp4": ("-c:v", "libx264", "-pix_fmt", "yuv420p", "-crf", "23", "-movflags", "+faststart", "-f", "mp4"),
    # Small, and one palette made of all frames in one pass.
    ".gif": ("-vf", f"scale=min(iw\\,320):-2,split[a][b];[a]palettegen[p];[b][p]{DITHER}", "-f", "gif"),
}
MAX_RATE = {".mp4": 60.0, ".gif": 25.0}
NEEDS = 'Videos need imageio-ffmpeg and Pillow; run: pip install "twotower[video]"'


def frame_rate(steps_per_second: float, path: Path) -> tuple[int, float]:
    """Every how many steps a frame is shown, and the frames a second that keep the task's own time."""
    if path.suffix not in MAX_RATE:
        raise UserError(f"A video is an .mp4 or a .gif file, not {path.name!r}.")
    every = max(math.ceil(steps_per_second / MAX_RATE[path.suffix]), 1)
    return every, steps_per_second / every


class Encoder:
    """Writes frames to a file beside the one asked for, which takes its place when all are there."""

    def __init__(self, path: Path, rate: float) -> None:
        try:
            import imageio_ffmpeg
            import PIL.Image  # noqa: F401
        except ImportError as error:
            raise UserError(NEEDS) from error
        self.path = path
        self.rate = rate
        self._program = imageio_ffmpeg.get_ffmpeg_exe()
        self._aside = path.with_name(f".{path.name}.tmp")
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "Encoder":
        try:
            self._aside.touch()  # says now, not after the episode, that the place cannot be written to
        except OSError as error:
            raise UserError(f"Cannot write {self.path}: {reason(error)}.") from error
        self._words: IO[bytes] = tempfile.TemporaryFile()
        return self

    def add(self, frame: np.ndarray) -> None:
        """Append a frame (height, width, 3) uint8; all have the size of the first."""
        if self._process is None:
            height, width, _ = frame.shape
            source = ("-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-r", f"{self.rate}", "-i", "-")
            command = [self._program, "-loglevel", "error", "-y", *source, *ARGUMENTS[self.path.suffix], self._aside]
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=self._words)
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(np.ascontiguousarray(frame).data)
        except OSError as error:
            raise self._failure() from error

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            finished = self._finish()
            if kind is None:
                if not finished:
                    raise self._failure()
                self._aside.replace(self.path)
        finally:
            self._words.close()
            with contextlib.suppress(OSError):
                self._aside.unlink(missing_ok=True)

    def _finish(self) -> bool:
        """Let ffmpeg write the end of the file; whether it could."""
        if self._process is None:
            return False
        with contextlib.suppress(OSError):
            self._process.communicate()
        return self._process.wait() == 0

    def _failure(self) -> UserError:
        self._finish()
        self._words.seek(0)
        words = self._words.read().decode(errors="replace").strip().splitlines()
        return UserError(f"Cannot write {self.path}: ffmpeg said {words[-1] if words else 'nothing'!r}.")

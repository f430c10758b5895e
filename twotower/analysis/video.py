"""A video of one episode, drawn without a screen, with the return so far on every frame."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, final

import numpy as np

from twotower.analysis.encoder import Encoder, frame_rate
from twotower.envs.base import EnvBatch, Transition
from twotower.envs.drawing import drawable
from twotower.envs.loop import CannotDraw, LoopBatch
from twotower.envs.opengl import INSTALL_OPENGL
from twotower.errors import UserError
from twotower.rollout.plan import evaluation_job
from twotower.rollout.worker import Worker
from twotower.training import TrainedPolicy
from twotower.training.evaluate import check_spaces


class Video(NamedTuple):
    """What was filmed."""

    path: Path
    env_id: str
    backend: str
    steps: int
    total: float
    """The return of the episode, or of its part that was filmed."""
    cut: bool
    """Whether the episode went on after the video's last frame."""


def record_video(policy: TrainedPolicy, path: str | Path, episode: int = 0, max_seconds: float = 60.0) -> Video:
    """Film an episode of the evaluation into an mp4 or gif; EnvPool's tasks are filmed in their twins."""
    file, path = policy.file, Path(path)
    env, spec = drawable(file.config.env, file.spec)
    check_spaces(file, spec)
    worker = Worker(dataclasses.replace(file.config, env=env), spec, (0,), (0,))
    job = evaluation_job(file.theta, 1, 1, file.normaliser)
    job = job._replace(plan=job.plan._replace(streams=np.array([episode])))
    title = f"{file.config.task}  {file.config.policy.kind}"
    try:
        batch = worker.batch(job.domain)
        assert isinstance(batch, LoopBatch)
        every, rate = frame_rate(batch.steps_per_second, path)
        with Encoder(path, rate) as encoder:
            film = Film(batch, every, round(max_seconds * batch.steps_per_second), title, encoder.add)
            worker.evaluate(job, lambda batch: film)
    except CannotDraw as error:
        raise _explained(spec.env_id, error) from error
    finally:
        worker.close()
    return Video(path, spec.env_id, spec.backend, film.steps, film.total, film.cut)


@final
class Film(EnvBatch):
    """Listens in on a batch of one slot and shows every so-many-th step, captioned, until the last."""

    def __init__(self, batch: LoopBatch, every: int, last: int, title: str, show: Callable[[np.ndarray], None]) -> None:
        self.batch, self.title, self.show = batch, title, show
        self.every, self.last = every, last
        self.steps, self.total, self.cut = 0, 0.0, False

    def begin(self, iteration: int, episodes: np.ndarray) -> None:
        self.batch.begin(iteration, episodes)

    def advance(self, slots: np.ndarray, actions: np.ndarray, starting: np.ndarray, seeds: np.ndarray) -> Transition:
        """Step as the batch does; the episode ends early where the video gets too long."""
        answer = self.batch.advance(slots, actions, starting, seeds)
        self.steps += not starting[0]
        self.total += float(answer.rewards[0])
        self.cut = self.steps >= self.last and not answer.dones[0]
        if self.steps % self.every == 0 or answer.dones[0]:
            caption = f"step {self.steps}   return {self.total:,.1f}"
            self.show(captioned(self.batch.picture(0), self.title, caption))
        return answer._replace(dones=answer.dones | self.cut)

    @property
    def reseed_every(self) -> int:
        return self.batch.reseed_every

    def close(self) -> None:
        self.batch.close()


def captioned(picture: np.ndarray, left: str, right: str) -> np.ndarray:
    """A picture with a strip of text on top, of even height and width as video wants it."""
    from PIL import Image, ImageDraw, ImageFont

    height, width = picture.shape[0] + picture.shape[0] % 2, picture.shape[1] + picture.shape[1] % 2
    size = max(width // 30, 10)
    strip = 2 * size
    canvas = Image.new("RGB", (width, height + strip), "black")
    canvas.paste(Image.fromarray(picture), (0, strip))
    draw, font = ImageDraw.Draw(canvas), ImageFont.load_default(size)
    draw.text((size // 2, strip // 2), left, "white", font, anchor="lm")
    draw.text((width - size // 2, strip // 2), right, "white", font, anchor="rm")
    return np.asarray(canvas)


def _explained(env_id: str, error: CannotDraw) -> UserError:
    """What to install where a picture could not be drawn."""
    words = str(error)
    if "pygame" in words:
        return UserError(f'Drawing {env_id} needs pygame; run: pip install "twotower[video]"')
    hint = f"MuJoCo needs OpenGL; run: {INSTALL_OPENGL}" if "OpenGL" in words else "Videos need render mode rgb_array."
    return UserError(f"{env_id} cannot be drawn ({words}). {hint}")

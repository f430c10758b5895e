"""What the commands that look at finished runs take, and what they print."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tyro.conf import Positional

from twotower.errors import UserError
from twotower.runs import Checkpoint, PolicyFile, RunFolder, load_policy_source


@dataclass(frozen=True)
class VideoOptions:
    """Film an episode of a trained policy, without a screen."""

    policy: Positional[str]
    """A run's folder or a policy file."""
    out: str | None = None
    """The .mp4 or .gif file to write; None writes video.mp4 beside the policy."""
    episode: int = 0
    """Which episode of the evaluation to film."""
    parameters: Literal["last", "best"] = "last"
    """The parameters training ended with, or those whose one training episode returned most."""
    seconds: float = 60.0
    """The video ends after this much of the task's own time."""


@dataclass(frozen=True)
class ExplainOptions:
    """Draw one decision of a policy: its candidates, their scores, the winner, and what the search looked at."""

    policy: Positional[str]
    """A run's folder or a policy file."""
    out: str = "explain.png"
    """The .png, .svg or .pdf file to write."""
    episode: int = 0
    """Which episode of the evaluation."""
    step: int | None = None
    """Which of its steps; None takes step 20, or the last of a shorter episode."""
    search: str | None = None
    """Any index of twotower.search, such as srp or coreset, to look through; None takes the policy's own."""


def explain(options: ExplainOptions) -> int:
    """Draw the decision and say what it was."""
    from twotower.analysis.explain import decide, draw_decision

    decision = decide(load_policy_source(options.policy), options.episode, options.step, options.search)
    draw_decision(decision, options.out)
    print("\n".join(decision.said()))
    print(f"picture: {options.out}")
    return 0


@dataclass(frozen=True)
class ReportOptions:
    """Show runs in one page: curves, comparisons with intervals and tests, configurations, times, videos.

    The page is a single file that needs no network; runs that differ in nothing but their seed are averaged.
    """

    runs: Positional[tuple[str, ...]]
    """Run folders, or folders of run folders."""
    out: str = "report.html"
    """The .html file to write."""
    title: str = "Training runs"
    """The page's title."""
    ties: bool = True
    """Run an episode of every policy to see how often its best scores tie."""
    video: bool = False
    """Film the best run of every configuration that has no video yet."""


def report(options: ReportOptions) -> int:
    """Write the page and say what is in it."""
    from twotower.analysis.report import write_report

    if not options.runs:
        raise UserError("Name run folders or a folder of them: twotower report runs/")
    shown = write_report(options.runs, options.out, options.title, options.ties, options.video)
    count = len(shown.runs)
    print(f"{options.out}: {count} {'run' if count == 1 else 'runs'}")
    for out in shown.left_out:
        print(f"left out: {out.path}: {out.reason}")
    return 0


def video(options: VideoOptions) -> int:
    """Film an episode and say what it shows."""
    from twotower.analysis.video import record_video
    from twotower.training import TrainedPolicy

    if options.episode < 0:
        raise UserError(f"--episode must be 0 or more, not {options.episode}.")
    if not 0 < options.seconds < float("inf"):
        raise UserError(f"--seconds must be a positive number, not {options.seconds}.")
    file = load_policy_source(options.policy)
    source = Path(options.policy)
    if options.parameters == "best":
        file = _best(file, source)
    beside = source if source.is_dir() else source.parent
    path = Path(options.out) if options.out else beside / "video.mp4"
    filmed = record_video(TrainedPolicy(file), path, options.episode, options.seconds)
    length = f"first {filmed.steps} steps" if filmed.cut else f"{filmed.steps} steps"
    print(f"{path}: {length} of {filmed.env_id} ({filmed.backend}), return {filmed.total:.2f}")
    if filmed.backend != file.spec.backend:
        print(
            f"It was trained in {file.spec.backend}, which draws no pictures and starts its episodes in other states."
        )
    return 0


def _best(file: PolicyFile, source: Path) -> PolicyFile:
    """The policy with the parameters of the best iteration, which only a run's checkpoint has."""
    from dataclasses import replace

    if not source.is_dir():
        raise UserError(f"{source} holds the last parameters only: name its run's folder for --parameters best.")
    if file.normaliser is not None:
        raise UserError(f"{source} keeps the observation normaliser of the last iteration only: film that one.")
    return replace(file, theta=Checkpoint.load(RunFolder(source).checkpoint).best_theta)

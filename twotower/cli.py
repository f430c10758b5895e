"""The command line: one short function a command; what it does lives in the package."""

import dataclasses
import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import Positional, arg

from twotower import __version__
from twotower.config import ExecutorName, RayConfig, SearchConfig, TrainConfig, nearest
from twotower.errors import UserError

USAGE = """\
twotower: implicit two-tower policies, trained by evolution strategies

  twotower tasks                              the recipes: the paper's 15 tasks
  twotower train swimmer                      train on a recipe, or on any environment id
  twotower train Ant-v5 --sigma 0.1           … with any option of `twotower train --help`
  twotower train hopper --preset fast         … in far fewer steps than the paper's way
  twotower tune hopper --trials 30            search the options that suit a task
  twotower resume runs/swimmer-…              go on from the last checkpoint
  twotower evaluate runs/swimmer-… --episodes 100 --json
  twotower video runs/swimmer-…               film an episode, as mp4 or gif
  twotower report runs/                       compare runs in one page, report.html
  twotower times runs/swimmer-…               where the time of its iterations went
  twotower reproduce scores                   the paper's tables and figures, beside its values
  twotower explain runs/swimmer-…             draw one decision: candidates, scores, winner
  twotower export runs/swimmer-… --to onnx    a graph for ONNX, or one NumPy module
  twotower bench throughput hopper            training against the physics alone
  twotower bench search --quick               action search against other libraries

Every command has its own --help. Versions: twotower --version.
Completion by the tab key: eval "$(twotower --print-completion bash)", or zsh, or fish."""


@dataclass(frozen=True)
class ResumeOptions:
    """Go on from a run's last checkpoint; the result is that of a run that never stopped."""

    run: Positional[str]
    """The run's folder."""
    iterations: int | None = None
    """A new budget of iterations, to train longer than first asked."""
    steps: int | None = None
    """A new budget of environment steps."""
    workers: int | None = None
    """Workers; the result does not depend on them."""
    executor: ExecutorName | None = None
    """Where workers live from now on."""
    ray: RayConfig = field(default_factory=RayConfig)
    worker_timeout: float | None = None
    """A worker that makes no step for this many seconds counts as dead."""
    plain: bool = False
    """Plain lines instead of the live view."""


@dataclass(frozen=True)
class EvaluateOptions:
    """Run fresh episodes of a trained policy; the same ones wherever and whenever it is evaluated."""

    policy: Positional[str]
    """A run's folder or a policy file."""
    episodes: int = 20
    """How many episodes."""
    method: Annotated[str | None, arg(name="search", aliases=["--search.method"])] = None
    """Serve with another search than the one trained with; see twotower train --help."""
    refresh: str | None = None
    """Keep candidates for another time than in training; an index needs rollout, iteration or fixed."""
    candidates: int | None = None
    """Offer another number of candidates than in training."""
    search: SearchConfig = field(default_factory=SearchConfig)
    json: bool = False
    """Print one JSON object with mean, std, episodes, returns and, where audited, search."""


@dataclass(frozen=True)
class TasksOptions:
    """List the recipes: the paper's 15 tasks with its architectures and scores."""

    json: bool = False
    """Print JSON."""


def main() -> None:
    """Run one command; bad input prints one sentence and exits with code 2."""
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE)
        return
    if arguments[0] == "--version":
        print(f"twotower {__version__}")
        return
    sys.path.append(os.getcwd())  # where module:Env-v0 is looked for, last
    try:
        if arguments[0] == "--print-completion":
            from twotower import completion

            print(completion.script(" ".join(arguments[1:]) or "bash", COMMANDS, options_of), end="")
            return
        sys.exit(run(arguments[0], arguments[1:]))
    except UserError as error:
        print(f"twotower: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("twotower: interrupted", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of a pipe left; nothing to say to it
        sys.exit(0)


def run(command: str, arguments: list[str]) -> int:
    """Run a command and return its exit code."""
    if command not in COMMANDS:
        raise UserError(f"There is no command {command!r}{nearest(command, COMMANDS)}; see: twotower --help")
    return COMMANDS[command](arguments)


def train(arguments: list[str]) -> int:
    """twotower train TASK …"""
    config = train_config(arguments)
    from twotower import api

    return _report(api.train(config))


def train_config(arguments: list[str]) -> TrainConfig:
    """The configuration that the arguments of `train` ask for: a recipe's or preset's defaults, then the options."""
    return _task_options(TrainConfig, "train", arguments, "twotower train swimmer --iterations 100 --seed 1")


def tune(arguments: list[str]) -> int:
    """twotower tune TASK …"""
    from twotower.tuning.config import TuneConfig
    from twotower.tuning.folder import open_study, read_study
    from twotower.tuning.runners import Interrupted
    from twotower.tuning.tune import tune

    example = "twotower tune hopper --trials 30 --steps 500000"
    if arguments and (Path(arguments[0]) / "study.json").is_file():
        before = dataclasses.replace(read_study(Path(arguments[0])), run_dir=arguments[0])
        config = _parse(TuneConfig, "tune", arguments[1:], example, before)
    else:
        config = _task_options(TuneConfig, "tune", arguments, example)
    folder = open_study(config)
    try:
        best = tune(config, folder)
    except (Interrupted, KeyboardInterrupt):
        print(f"Stopped. Go on with: twotower tune {folder}")
        return 130
    print(f"best of {config.trials} trials: {best.trial.score:.2f} (trial {best.trial.number})")
    print(f"train with it: {best.command}")
    print(f"study: {folder}, the best also as JSON in {best.path}")
    return 0


def resume(arguments: list[str]) -> int:
    """twotower resume RUN …"""
    example = "twotower resume runs/swimmer-20260101-120000 --iterations 500"
    options = dataclasses.asdict(_parse(ResumeOptions, "resume", arguments, example))
    from twotower import api

    run_folder = options.pop("run")
    if options["ray"]["address"] is None:
        options["ray"] = None
    return _report(
        api.resume(
            run_folder, **{name: value for name, value in options.items() if value is not None and value is not False}
        )
    )


def evaluate(arguments: list[str]) -> int:
    """twotower evaluate RUN …"""
    options = _parse(EvaluateOptions, "evaluate", arguments, "twotower evaluate policy.safetensors --episodes 100")
    if options.episodes < 1:
        raise UserError(f"--episodes must be at least 1, not {options.episodes}.")
    from twotower.training import load

    settings = {name: value for name, value in dataclasses.asdict(options.search).items() if value is not None}
    if not options.search.audit:
        del settings["audit"]
    serving = {"search": options.method, "refresh": options.refresh, "candidates": options.candidates}
    policy = load(options.policy, **serving, **settings)
    result, audit = policy.evaluate_and_audit(options.episodes)
    if options.json:
        numbers = {"mean": result.mean, "std": result.std, "episodes": options.episodes, "returns": result.returns}
        print(json.dumps(numbers | ({} if audit is None else {"search": audit._asdict()})))
        return 0
    print(f"{result.mean:.2f} ± {result.std:.2f} over {options.episodes} episodes of {policy.file.spec.env_id}")
    if audit is not None:
        buckets = f"of {audit.buckets:,.1f} buckets " if audit.buckets else ""
        print(
            f"search: regret {audit.regret:.3%} (worst {audit.worst_regret:.2%}), recall {audit.recall:.1%}, "
            f"{audit.visited:,.0f} candidates {buckets}scored a choice ({audit.audits:,} audited)"
        )
    recorded = policy.file.evaluation
    if recorded is not None:
        shared = min(len(recorded.returns), options.episodes)
        same = sum(a == b for a, b in zip(recorded.returns, result.returns, strict=False))
        verdict = "reproduced exactly" if same == shared else "NOT reproduced: other versions or another machine?"
        if any(value is not None for value in serving.values()):
            verdict = f"{same} of {shared} episodes the same as served now"
        print(f"recorded at training: {recorded.mean:.2f} ± {recorded.std:.2f}, {verdict}")
    return 0


def tasks(arguments: list[str]) -> int:
    """twotower tasks"""
    options = _parse(TasksOptions, "tasks", arguments, "twotower tasks --json")
    from twotower import recipes

    rows = [_task(recipes.get(name)) for name in recipes.names()]
    if options.json:
        print(json.dumps(rows))
        return 0
    line = "{:21}  {:22.22} {:>5} {:>6} {:>10}  {:>5} {:>5} {:>8}".format
    print(line("task", "environment", "D", "N", "iterations", "ITT", "IOT", "explicit"))
    for row in rows:
        scores = [row["published"].get(kind) for kind in ("itt", "iot", "explicit")]
        means = [f"{score[0]:.0f}" if score else "-" for score in scores]
        print(line(row["task"], row["env_id"], row["parameters"]["itt"], row["candidates"], row["iterations"], *means))
    print("Scores: the paper's means over 10 seeds. D and N: parameters and candidates of ITT.")
    return 0


def video(arguments: list[str]) -> int:
    """twotower video RUN …"""
    from twotower.analysis import commands

    return commands.video(
        _parse(commands.VideoOptions, "video", arguments, "twotower video runs/swimmer-… --out a.gif")
    )


def explain(arguments: list[str]) -> int:
    """twotower explain POLICY …"""
    from twotower.analysis import commands

    return commands.explain(
        _parse(commands.ExplainOptions, "explain", arguments, "twotower explain runs/swimmer-… --step 50 --search srp")
    )


def report(arguments: list[str]) -> int:
    """twotower report RUNS …"""
    from twotower.analysis import commands

    return commands.report(
        _parse(commands.ReportOptions, "report", arguments, "twotower report runs/ --out report.html")
    )


def reproduce(arguments: list[str]) -> int:
    """twotower reproduce RESULT …"""
    from twotower.experiments import command

    example = "twotower reproduce scores --budget paper --tasks swimmer hopper --seeds 5"
    return command.reproduce(_parse(command.ReproduceOptions, "reproduce", arguments, example), arguments)


def times(arguments: list[str]) -> int:
    """twotower times RUN …"""
    from twotower.analysis import times

    return times.main(_parse(times.TimesOptions, "times", arguments, "twotower times runs/swimmer-… --last 20"))


def export(arguments: list[str]) -> int:
    """twotower export POLICY …"""
    from twotower.export import commands

    return commands.export(
        _parse(commands.ExportOptions, "export", arguments, "twotower export runs/swimmer-… --out policy.onnx")
    )


def bench(arguments: list[str]) -> int:
    """twotower bench throughput …"""
    from twotower.benchmarks import BENCHMARKS

    if arguments and arguments[0] in ("-h", "--help"):
        print("usage: twotower bench BENCHMARK [OPTIONS]\n")
        for name, (options, _) in BENCHMARKS.items():
            print(f"  {name:12} {options.__doc__}")
        print("\nExample: twotower bench throughput hopper --json")
        return 0
    if not arguments or arguments[0] not in BENCHMARKS:
        raise UserError(f"Name a benchmark: twotower bench {' | '.join(BENCHMARKS)}")
    options_class, function = BENCHMARKS[arguments[0]]
    example = f"twotower bench {arguments[0]} swimmer --json"
    return function(_parse(options_class, f"bench {arguments[0]}", arguments[1:], example))


COMMANDS: dict[str, Callable[[list[str]], int]] = {
    "tasks": tasks,
    "train": train,
    "resume": resume,
    "tune": tune,
    "evaluate": evaluate,
    "video": video,
    "report": report,
    "times": times,
    "explain": explain,
    "export": export,
    "reproduce": reproduce,
    "bench": bench,
}


class Described(Exception):
    """A command's class of options and its example: what it raises where DESCRIBE stands in its arguments."""


class _Describe(str):
    """A word that nobody can type."""


DESCRIBE = _Describe("--describe")


def options_of(command: str) -> type:
    """The dataclass of a command's options; for `bench`, of its first benchmark."""
    try:
        run(command, ["throughput", DESCRIBE] if command == "bench" else [DESCRIBE])
    except Described as described:
        return described.args[0]
    raise AssertionError(f"{command} does not parse its arguments with _parse")


def _task_options(cls: Any, command: str, arguments: list[str], example: str) -> Any:
    """Options of a command that takes a task: the task's defaults under the preset asked for, then the options."""
    from twotower.recipes import budgeted, task_config

    def parse(named: str | None, kind: Any = None, preset: Any = cls.preset) -> Any:
        if named is None:
            return _parse(cls, command, arguments, example)
        task = task_config(named, kind, preset)
        task = task if cls is TrainConfig else dataclasses.replace(task, iterations=None)
        values = {field.name: getattr(task, field.name) for field in dataclasses.fields(task)}
        return _parse(cls, command, arguments, example, cls(**values))

    named = arguments[0] if arguments and not arguments[0].startswith("-") else parse(None).task
    config = parse(named)
    if config.preset != cls.preset:
        config = parse(named, preset=config.preset)
    return budgeted(parse(named, config.policy.kind, config.preset))


def _parse(options: Any, command: str, arguments: list[str], example: str, default: Any = None) -> Any:
    """The options of a command; bad ones are explained by tyro, which exits with code 2."""
    if arguments[-1:] == [DESCRIBE] and isinstance(arguments[-1], _Describe):
        raise Described(options, example)
    import tyro

    description = f"{options.__doc__}\n\nExample: {example}"
    extra = {} if default is None else {"default": default}
    return tyro.cli(options, args=arguments, prog=f"twotower {command}", description=description, **extra)


def _report(run: Any) -> int:
    """Say what a run came to, and how to go on."""
    if run.stopped_by is not None:
        done = run.policy.file.iteration
        print(f"Stopped after iteration {done}. Go on with: twotower resume {run.folder}")
        return 128 + run.stopped_by
    file, evaluation = run.policy.file, run.policy.file.evaluation
    if not run.trained:
        spent = f"{file.iteration} iterations and {file.steps:,} steps"
        print(f"Nothing was trained: {spent} are done, which is the budget or more; --iterations or --steps raises it.")
    print(f"evaluation: {evaluation.mean:.2f} ± {evaluation.std:.2f} over {len(evaluation.returns)} fresh episodes")
    print(f"run folder: {run.folder}")
    return 0


def _task(recipe: Any) -> dict[str, Any]:
    config = recipe.config()
    return {
        "task": recipe.name,
        "env_id": recipe.env_id,
        "candidates": config.candidates.count,
        "refresh": config.candidates.refresh,
        "parameters": recipe.published_num_params(),
        "iterations": recipe.iterations,
        "published": recipe.published_scores(),
    }


if __name__ == "__main__":
    main()

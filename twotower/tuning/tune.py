"""Carries a study out: trials side by side, each evaluated at every rung, the best written as a command."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from twotower.config import TrainConfig
from twotower.randomness import Domain, derive
from twotower.runs import load_policy_source
from twotower.tuning.config import TuneConfig
from twotower.tuning.folder import Best, write_best
from twotower.tuning.progress import Progress
from twotower.tuning.runners import Runners, open_runners, run_folder
from twotower.tuning.space import applied, defaults
from twotower.tuning.study import Study, Trial

FIRST_SEED = 10**9  # far from the seeds that people evaluate on


def tune(config: TuneConfig, folder: Path) -> Best:
    """Carry out the study of a folder, or the rest of it."""
    study = Study(folder / "trials.json", config.over, config.seed, config.rungs)
    study.load()
    first = defaults(config.train_config(), config.over)
    progress = Progress(config, study)
    with open_runners(config.workers or config.abreast * config.seeds) as runners:
        while trials := study.ask(config.abreast, config.trials, first):
            before = trials[0].number - trials[0].number % config.abreast
            while trials:
                trials = [
                    _advance(study, trial, outcome, before, progress)
                    for trial, outcome in zip(trials, _rung(config, folder, trials, runners, progress), strict=True)
                ]
                trials = [trial for trial in trials if trial.state == "running"]
    return write_best(config, study, folder)


def _advance(study: Study, trial: Trial, outcome: float | str, before: int, progress: Progress) -> Trial:
    """Record how a trial did at a rung."""
    if isinstance(outcome, str):
        trial = replace(trial, state="failed", failure=outcome)
    else:
        trial = study.judged(trial, outcome, before)
    study.save(trial)
    progress.judged(trial)
    return trial


def _rung(
    config: TuneConfig, folder: Path, trials: Sequence[Trial], runners: Runners, progress: Progress
) -> list[float | str]:
    """Take trials of a batch to their next rungs: each one's mean score, or why it failed."""
    runs = [[_run(config, folder, trial, seed) for seed in range(config.seeds)] for trial in trials]
    failures = runners.carry_out([run for trial in runs for run in trial if _evaluated(run) is None], progress)
    outcomes: list[float | str] = []
    for trial in runs:
        failed = next((failures[run.run_dir] for run in trial if run.run_dir in failures), None)
        outcomes.append(failed or float(np.mean([_evaluated(run) or 0.0 for run in trial])))
    return outcomes


def _run(config: TuneConfig, folder: Path, trial: Trial, seed: int) -> TrainConfig:
    """One of a trial's runs, to the trial's next rung."""
    assert config.steps is not None
    seed = FIRST_SEED + derive(config.seed, Domain.TUNING, 0, seed) % FIRST_SEED
    return replace(
        applied(config.train_config(), trial.values),
        seed=seed,
        steps=max(round(config.steps * (len(trial.scores) + 1) / config.rungs), 1),
        workers=1,
        executor="serial",
        run_dir=str(folder / "trials" / f"{trial.number:04d}-s{seed}"),
    )


def _evaluated(run: TrainConfig) -> float | None:
    """The score of a run that reached its rung."""
    folder = run_folder(run)
    if not folder.policy.exists():
        return None
    policy = load_policy_source(folder.path)
    return policy.evaluation.mean if policy.evaluation is not None and policy.steps >= (run.steps or 0) else None

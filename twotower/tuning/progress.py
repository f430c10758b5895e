"""What a user sees of a study: a line for every rung, and in between where the runs are."""

import sys
import time
from collections.abc import Sequence
from pathlib import Path

from twotower.config import TrainConfig
from twotower.experiments.folders import share_done
from twotower.tuning.config import TuneConfig
from twotower.tuning.study import Study, Trial
from twotower.view import duration

SAYS_EVERY = 10.0


class Progress:
    """A line for every rung a trial reaches, and in between where the runs are."""

    def __init__(self, config: TuneConfig, study: Study) -> None:
        self._config, self._study = config, study
        self._began = self._said = time.monotonic()
        self._done_before = self._share([])

    def judged(self, trial: Trial) -> None:
        """A trial reached a rung, or failed."""
        best = self._study.best
        result = f"score {trial.score:.1f}" if trial.scores else ""
        if trial.state == "failed":
            result = f"failed: {trial.failure}"
        words = [f"trial {trial.number}", f"rung {len(trial.scores)}/{self._config.rungs}", result]
        words += ["pruned"] if trial.state == "pruned" else []
        words += [f"best {best.score:.1f} (trial {best.number})"] if best else []
        self._say("  ".join(word for word in words if word), [])

    def update(self, runs: Sequence[TrainConfig]) -> None:
        """What runs, now and then."""
        if time.monotonic() - self._said >= SAYS_EVERY:
            where = ", ".join(f"{Path(str(run.run_dir)).name} {_share_done(run):.0%}" for run in runs)
            self._say(f"{len(self._study.trials)} of {self._config.trials} trials begun  {where}", runs)

    def _share(self, runs: Sequence[TrainConfig]) -> float:
        """The share of all rungs that are done; a pruned trial owes nothing."""
        rungs = sum(
            len(trial.scores) if trial.state == "running" else self._config.rungs for trial in self._study.trials
        )
        done = rungs + sum(_share_done(run) for run in runs) / self._config.seeds
        return min(done / (self._config.rungs * self._config.trials), 1.0)

    def _say(self, line: str, runs: Sequence[TrainConfig]) -> None:
        now, share = time.monotonic(), self._share(runs)
        self._said = now
        gained = share - self._done_before
        eta = f"  ETA {duration((now - self._began) * (1 - share) / gained)}" if gained > 0 and share < 1 else ""
        print(f"{line}{eta}", file=sys.stderr, flush=True)


def _share_done(run: TrainConfig) -> float:
    return share_done(Path(str(run.run_dir)), run)

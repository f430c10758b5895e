"""A study: which trials there were and what they came to, and Optuna's choice of the next.

Optuna's sampler and pruner see the finished trials of the file and nothing else, and its random numbers are named by
the trial, so a study that was stopped chooses as one that never was.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from twotower.errors import UserError
from twotower.files.atomic import reason, write_atomically
from twotower.randomness import Domain, derive
from twotower.tuning.space import distributions

if TYPE_CHECKING:
    import optuna

State = Literal["running", "complete", "pruned", "failed"]
RANDOM_TRIALS = 8  # drawn at random before Optuna's model chooses
UNPRUNED_TRIALS = 4  # completed before the median means something


@dataclass(frozen=True)
class Trial:
    """A combination of options and how it did."""

    number: int
    values: dict[str, Any]
    scores: tuple[float, ...] = ()
    """The mean return at each rung so far."""
    state: State = "running"
    failure: str = ""

    @property
    def score(self) -> float:
        """The last rung's."""
        return self.scores[-1] if self.scores else float("-inf")


@dataclass
class Study:
    """The trials of a folder."""

    path: Path
    over: tuple[str, ...]
    seed: int
    rungs: int
    trials: list[Trial] = field(default_factory=list)

    def load(self) -> None:
        """Read the trials so far."""
        try:
            data = json.loads(self.path.read_bytes())
            self.trials = [Trial(**{**row, "scores": tuple(row["scores"])}) for row in data]
        except FileNotFoundError:
            self.trials = []
        except OSError as error:
            raise UserError(f"Cannot read {self.path}: {reason(error)}.") from error
        except (ValueError, TypeError, KeyError) as error:
            raise UserError(f"{self.path} is damaged: put the original back, or start another study.") from error

    def save(self, trial: Trial) -> None:
        """Put a trial in its place in the file."""
        self.trials[trial.number :] = [trial, *self.trials[trial.number + 1 :]]
        write_atomically(self.path, (json.dumps([asdict(trial) for trial in self.trials], indent=1) + "\n").encode())

    @property
    def best(self) -> Trial | None:
        """The best of the completed trials; the first of equal ones."""
        completed = [trial for trial in self.trials if trial.state == "complete"]
        return max(completed, key=lambda trial: trial.score, default=None)

    def ask(self, count: int, limit: int, first: dict[str, Any]) -> list[Trial]:
        """The trials of the next batch of `count` that have yet to end, none from `limit` on; trial 0 is `first`.

        All of a batch are chosen from what ended before it.
        """
        start = next((trial.number for trial in self.trials if trial.state == "running"), len(self.trials))
        start -= start % count  # a batch begun is the same batch when it goes on
        stop = min(start + count, limit)
        study = self._optuna(start)
        for number in range(start, stop):
            study.sampler = self._sampler(number)
            known = self.trials[number].values if number < len(self.trials) else first if number == 0 else None
            if known is not None:
                study.enqueue_trial(known)
            asked = study.ask(distributions(self.over))
            if number >= len(self.trials):
                self.save(Trial(number, dict(asked.params)))
        return [trial for trial in self.trials[start:stop] if trial.state == "running"]

    def judged(self, trial: Trial, score: float, before: int) -> Trial:
        """The trial with the score of its next rung: complete, or pruned by the median of the trials below `before`."""
        scores = (*trial.scores, score)
        state: State = "complete" if len(scores) == self.rungs else "running"
        if state == "running" and self._below_median(replace(trial, scores=scores), before):
            state = "pruned"
        return replace(trial, scores=scores, state=state)

    def _below_median(self, trial: Trial, before: int) -> bool:
        study = self._optuna(before)
        study.enqueue_trial(trial.values)
        asked = study.ask(distributions(self.over))
        for rung, score in enumerate(trial.scores):
            asked.report(score, rung)
        return asked.should_prune()

    def _optuna(self, before: int) -> "optuna.Study":
        """Optuna's study of the trials below `before`."""
        optuna = _optuna()
        pruner = optuna.pruners.MedianPruner(n_startup_trials=UNPRUNED_TRIALS)
        study = optuna.create_study(direction="maximize", sampler=self._sampler(before), pruner=pruner)
        study.add_trials([_frozen(trial, self.over) for trial in self.trials[:before]])
        return study

    def _sampler(self, number: int) -> Any:
        """Optuna's model with the random numbers of one trial."""
        seed = derive(self.seed, Domain.TUNING, number) & 0x7FFFFFFF
        return _optuna().samplers.TPESampler(n_startup_trials=RANDOM_TRIALS, seed=seed)


def _frozen(trial: Trial, over: Sequence[str]) -> "optuna.trial.FrozenTrial":
    """An ended trial as Optuna has it."""
    optuna = _optuna()
    states = {"complete": "COMPLETE", "pruned": "PRUNED", "failed": "FAIL"}
    return optuna.trial.create_trial(
        state=optuna.trial.TrialState[states[trial.state]],
        value=trial.score if trial.state == "complete" else None,
        params=trial.values,
        distributions=distributions(tuple(over)),
        intermediate_values=dict(enumerate(trial.scores)),
    )


def _optuna() -> Any:
    try:
        import optuna
    except ImportError as error:
        raise UserError('Tuning needs Optuna: install it with pip install "twotower[tune]"') from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna

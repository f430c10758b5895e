"""What runs cost: environment steps a second of one core, measured, and from them core-seconds."""

from collections.abc import Iterable

from twotower.experiments.plan import Planned
from twotower.recipes import find

START_SECONDS = 0.5
# Steps of an episode of a trained policy; steps a second of one core for ITT, one-tower and explicit policies. The
# first five from results/wall-clock (AMD EPYC, two workers, halved); the others from a few iterations of single runs.
STEPS_PER_SECOND = {
    "swimmer": (1000, 22500, 19500, 23000),
    "lunarlander": (300, 59000, 57000, 62000),
    "hopper": (500, 11500, 11500, 11700),
    "halfcheetah": (1000, 31000, 31000, 33000),
    "walker2d": (500, 9800, 10000, 9800),
    "cartpole": (500, 150000, 150000, 150000),
    "mountaincar": (200, 150000, 150000, 150000),
    "acrobot": (300, 80000, 80000, 150000),
    "mountaincarcontinuous": (999, 70000, 60000, 140000),
    "invertedpendulum": (1000, 9000, 7000, 10000),
    "fish-swim": (1000, 4500, 500, 8500),
    "swimmer6": (1000, 3500, 500, 7800),
    "swimmer15": (1000, 2600, 500, 3000),
    "hopper-stand": (1000, 6000, 500, 11000),
    "walker-walk": (1000, 3000, 500, 4800),
}
UNKNOWN = (1000, 4000, 2000, 6000)


def core_seconds(planned: Planned) -> float:
    """An estimate for one core; episodes are taken as long as those of a trained policy."""
    config = planned.config
    recipe = find(config.task)
    length, *rates = _figures(config.task)
    rate = dict(zip(("itt", "iot", "explicit"), rates, strict=True))[config.policy.kind]
    length = min(length, config.env.max_episode_steps or length)
    if config.policy.kind == "iot":
        usual = recipe.candidates.count if recipe else 1000
        rate *= usual / config.candidates.count  # one-tower's work a step is that of its candidates
    limits = [config.steps] if config.steps is not None else []
    limits += [config.iterations * (2 * directions(planned) + 1) * length] if config.iterations is not None else []
    steps = min(limits, default=0) + config.evaluation_episodes * length  # training ends with whichever is spent first
    return START_SECONDS + steps / rate


def episode_length(task: str) -> int:
    """Steps of an episode of a trained policy."""
    return _figures(task)[0]


def directions(planned: Planned) -> int:
    """M, from the recipe's number of parameters where the configuration leaves it open."""
    config = planned.config
    recipe = find(config.task.split("-itt-")[0])  # a smaller network counts as the task's own
    known = recipe.published_num_params() if recipe else {}
    return config.strategy.num_directions or known.get(config.policy.kind, 100)


def total(runs: Iterable[Planned]) -> float:
    """Core-seconds of runs, each counted once."""
    return sum(core_seconds(run) for run in {run.name: run for run in runs}.values())


def _figures(task: str) -> tuple[int, int, int, int]:
    recipe = find(task.split("-itt-")[0])
    return STEPS_PER_SECOND.get(recipe.name if recipe else "", UNKNOWN)

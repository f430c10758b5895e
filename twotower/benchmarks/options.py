"""What `twotower bench throughput` can be asked for."""

import math
from dataclasses import dataclass, field, replace
from typing import Literal

from tyro.conf import Positional

from twotower.benchmarks.suite import SUITES, Case
from twotower.config import ExecutorName, PolicyKind, RayConfig, TrainConfig
from twotower.errors import UserError
from twotower.training import task_config


@dataclass(frozen=True)
class ThroughputConfig:
    """Training against its limit: the same environment steps replayed without a policy, and the machine's ceiling."""

    tasks: Positional[tuple[str, ...]] = ()
    """Recipes or environment ids to measure."""
    suite: Literal["paper", "search"] | None = None
    """Measure a list of tasks and options with the bars they must pass: paper, the recipes; search, HalfCheetah with
    many candidates kept for a rollout. Writes results/throughput or results/throughput-search."""
    kind: PolicyKind = "itt"
    """Policy to train."""
    candidates: int | None = None
    """N; None takes the recipe's."""
    refresh: Literal["step", "rollout", "iteration", "fixed"] | None = None
    """When candidates are redrawn; None takes the recipe's."""
    search: str | None = None
    """How the best candidate is found; None takes the recipe's."""
    backend: Literal["auto", "envpool", "gymnasium", "dm_control"] = "auto"
    """Library that runs the tasks."""
    slots: int | None = None
    """Environments alive at once over all workers; None takes the recipe's."""
    workers: int | None = None
    """Worker processes; None takes one a core."""
    executor: ExecutorName = "processes"
    """Where workers live: processes of their own, inside this one, or on a Ray cluster."""
    ray: RayConfig = field(default_factory=RayConfig)
    repetitions: int = 7
    """How often training, replay and ceiling are measured in turn."""
    seconds: float = 1.0
    """A repetition trains whole iterations for at least this long; the ceiling steps for exactly this long."""
    warmup_seconds: float = 10.0
    """Train unmeasured for this long first, two iterations at the least."""
    warmup_iterations: int | None = None
    """Train exactly this many iterations unmeasured, in place of --warmup-seconds."""
    policy_file: str | None = None
    """A policy file or run folder whose parameters to start from."""
    seed: int = 0
    """Seed of the training."""
    out: str | None = None
    """Folder for results.json and a Markdown table; a suite has its own."""
    json: bool = False
    """Print one JSON object a task, a line each."""

    def __post_init__(self) -> None:
        for name, value in (("repetitions", self.repetitions), ("warmup-iterations", self.warmup_iterations)):
            if value is not None and value < 1:
                raise UserError(f"--{name} must be at least 1, not {value}.")
        if not 0 < self.seconds < math.inf:
            raise UserError(f"--seconds must be a positive number, not {self.seconds}.")
        if not 0 <= self.warmup_seconds < math.inf:
            raise UserError(f"--warmup-seconds must be 0 or more, not {self.warmup_seconds}.")
        if bool(self.tasks) == bool(self.suite):
            raise UserError("Name tasks to measure, such as twotower bench throughput hopper, or a --suite, not both.")
        if self.suite and (self.kind, self.backend) != ("itt", "auto"):
            raise UserError("A --suite chooses policies and libraries itself: leave out --kind and --backend.")

    def cases(self) -> tuple[Case, ...]:
        """What to measure; a suite's cases name their own policy and backend."""
        return SUITES[self.suite] if self.suite else tuple(Case(task, self.kind, self.backend) for task in self.tasks)

    def train_config(self, case: Case) -> TrainConfig:
        """A case with the options that apply to it, as a configuration of training."""
        config = task_config(case.task, case.kind)
        candidates, policy = config.candidates, config.policy
        return replace(
            config,
            seed=self.seed,
            workers=self.workers,
            executor=self.executor,
            ray=self.ray,
            candidates=replace(
                candidates,
                count=case.candidates or self.candidates or candidates.count,
                refresh=case.refresh or self.refresh or candidates.refresh,
            ),
            policy=replace(policy, search=case.search or self.search or policy.search),
            strategy=replace(config.strategy, num_directions=case.directions or config.strategy.num_directions),
            env=replace(config.env, backend=case.backend, slots=config.env.slots if self.slots is None else self.slots),
        )

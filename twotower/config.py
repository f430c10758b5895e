"""Every choice a user can make, as frozen dataclasses; a field's docstring is its --help."""

import dataclasses
import difflib
import json
import math
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from tyro.conf import Positional, arg

from twotower.errors import UserError

PolicyKind = Literal["itt", "iot", "explicit"]
LogName = Literal["tensorboard", "wandb"]
PresetName = Literal["paper", "fast", "ars"]
ExecutorName = Literal["processes", "serial", "ray"]


@dataclass(frozen=True)
class PolicyConfig:
    """The network and how it turns a state into an action."""

    kind: Annotated[PolicyKind, arg(aliases=["--kind"])] = "itt"
    """itt: two towers; iot: one tower on (state, action); explicit: a network that outputs the action."""
    latent: int | None = None
    """ITT: dimension of the latent space both towers map to; None takes the action's dimension."""
    state_hidden: tuple[int, ...] = ()
    """ITT: widths of the state tower's hidden layers."""
    action_hidden: tuple[int, ...] = ()
    """ITT: widths of the action tower's hidden layers."""
    hidden: tuple[int, ...] = ()
    """IOT and explicit: widths of the hidden layers."""
    activation: Literal["relu", "linear", "tanh"] = "relu"
    """Activation of the hidden layers; outputs are linear."""
    kernel: Literal["dot", "softmax"] = "dot"
    """Kernel K(x, y) between latents: x·y, or exp(x·y); they differ only when sampling."""
    choice: Literal["argmax", "sample"] = "argmax"
    """Take the best candidate, or sample one with probability proportional to exp(K / temperature)."""
    temperature: float = 1.0
    """Temperature of the sampled choice."""
    search: Annotated[str, arg(aliases=["--search", "--search.method"])] = "auto"
    """How the best candidate is found. Exact: brute_force, box_tree, bounded (branch and bound over a box's candidates
    that all members share), hull (up to 3 dimensions), auto (the fastest of the first three); the whole box in closed
    form for one-matrix action towers: corner; approximate: coreset, partitions, srp, srp_ranges, srp_paper, rft. To
    sample: lazy_gumbel (exact), rft. See docs/search.md."""
    refinements: int = 0
    """Rounds of derivative-free optimisation: resample in a box around the best candidate, shrink, repeat."""
    refinement_radius: float = 0.33
    """First refinement box's half-width, as a fraction of the action box's."""
    refinement_shrink: float = 0.5
    """How much the refinement box shrinks each round."""
    normalise_observations: bool = False
    """Shift and scale every observation by the mean and deviation of those seen in training."""


@dataclass(frozen=True)
class SearchConfig:
    """Options of the search method; None leaves one as the method has it."""

    audit: float = 0.0
    """Share of the choices to compare with exact search; regret, recall, and the candidates and buckets visited appear
    in the metrics."""
    bits: int | None = None
    """srp, srp_ranges, srp_paper: m, the number of projections."""
    budget: int | None = None
    """srp, srp_ranges, srp_paper: how many candidates a choice scores."""
    ranges: int | None = None
    """srp_ranges: how many ranges of norms are hashed apart."""
    regret: float | None = None
    """box_tree: (best - found) / (best - mean) that every choice may have, 0 is exact; coreset, partitions: that
    choices may have on average, measured while they are built."""
    directions: int | None = None
    """coreset: how many random directions."""
    queries: int = 256
    """coreset: how many states of the last iteration's rollouts lend their directions, too."""
    features: int | None = None
    """rft: r, the number of random features."""
    leaf: int | None = None
    """rft: candidates in a leaf, among which the softmax is exact."""
    samples: int | None = None
    """rft: an argmax choice is the best of this many samples; 0 descends to the heavier branch."""
    normalise: bool | None = None
    """rft: use cosines in place of inner products."""
    kind: Literal["optimal", "favor"] | None = None
    """rft: positive features of the least variance, or FAVOR+."""


@dataclass(frozen=True)
class CandidatesConfig:
    """Which candidate actions exist and how long they are kept."""

    count: Annotated[int, arg(aliases=["--candidates"])] = 1000
    """N, the number of candidates in a box; a discrete space always offers all its actions."""
    count_growth: float = 1.0
    """N is multiplied by this after every iteration, until it reaches the final count."""
    final_count: int = 1000
    """The N at which growth (or decay) ends."""
    refresh: Annotated[Literal["step", "rollout", "iteration", "fixed"], arg(aliases=["--refresh"])] = "step"
    """When candidates are redrawn: every step, rollout, iteration (one set for all members), or never."""
    draw: Literal["uniform", "sobol"] = "uniform"
    """Independent uniform candidates, or a randomly shifted Sobol sequence."""
    encoding: Literal["onehot", "scalar"] = "onehot"
    """How a discrete action enters a network: one-hot, or as its index (the paper's)."""


@dataclass(frozen=True)
class StrategyConfig:
    """How returns become the next parameters."""

    estimator: Literal["antithetic", "forward_difference"] = "antithetic"
    """Gradient estimator: both signs of every direction, or one sign against the centre."""
    directions: Literal["orthogonal", "structured", "independent"] = "orthogonal"
    """Orthogonal Gaussian (QR), Hadamard-Rademacher (regenerated from seeds), or independent Gaussian."""
    num_directions: int | None = None
    """M, directions an iteration; None takes the number of parameters D."""
    sigma: Annotated[float, arg(aliases=["--sigma"])] = 1.0
    """σ, the size of the perturbations."""
    sigma_decay: float = 1.0
    """σ is multiplied by this after every iteration."""
    step_size: Annotated[float, arg(aliases=["--step-size"])] = 0.01
    """η, the size of the gradient step."""
    step_decay: float = 1.0
    """η is multiplied by this after every iteration."""
    decay_steps: int | None = None
    """σ and η decay just once, little by little over this many environment steps; None: every iteration."""
    lazy: int = 1
    """The action tower is updated every this many iterations; between, only the state tower moves."""
    lazy_decay: float = 0.0
    """α: the action tower is updated at iteration t with probability exp(-α t)."""
    common_random_numbers: bool = False
    """Both signs of a direction share the episode's start, candidates and sampling noise."""
    discount: float = 1.0
    """Discount of the return that trains; reported returns are never discounted."""
    survival_bonus: float = 0.0
    """A bonus that the task pays at every step, left out of the return that trains; reported returns keep it."""
    episodes_per_member: int = 1
    """Episodes whose mean is a member's return."""
    shaping: Literal["none", "ranks"] = "none"
    """What stands for a return: itself, or its rank among the members', spread evenly over [-1/2, 1/2]."""
    top_directions: int | None = None
    """Only this many directions count in a step, those of the best members; None counts all."""
    scale_returns: bool = False
    """Divide returns by the standard deviation of those that count."""
    step_rule: Literal["sgd", "momentum", "adam", "clipup"] = "sgd"
    """How a gradient becomes a step; clipup is momentum on normed gradients with a limited speed."""
    momentum: float = 0.9
    """Decay of the gradients' (Adam: also β₁) or steps' (ClipUp) running mean."""
    second_momentum: float = 0.999
    """Adam's β₂, the decay of the squared gradients' running mean."""
    max_speed: float | None = None
    """ClipUp's largest step; None takes twice the step size."""
    weight_decay: float = 0.0
    """Every step also shrinks the parameters it moves by η times this."""
    initial_scale: float = 1.0
    """Standard deviation of the initial parameters; 0 starts from zeros."""
    initial_state_scale: float = 1.0
    """ITT: the state tower's initial parameters are multiplied by this; 0 starts as if all actions were alike."""


@dataclass(frozen=True)
class EnvConfig:
    """Where the environment comes from and how many are alive at once."""

    backend: Literal["auto", "envpool", "gymnasium", "dm_control"] = "auto"
    """Library that runs the task; auto takes EnvPool where it has the id."""
    slots: int = 64
    """Environments alive at once over all workers; part of the result, so never derived from the machine."""
    kwargs: str = "{}"
    """Keyword arguments of the environment, as a JSON object."""
    wrappers: tuple[str, ...] = ()
    """Gymnasium wrappers to apply in order, each as module:Class."""
    max_episode_steps: int | None = None
    """Cut episodes after this many steps; None leaves the task's own limit."""


@dataclass(frozen=True)
class RayConfig:
    """Which Ray `--executor ray` uses."""

    address: str | None = None
    """The cluster's HOST:PORT, or auto for the one that this machine is a node of; None starts Ray here, for this run
    alone."""


@dataclass(frozen=True)
class TrainConfig:
    """Train a policy; the task is a recipe (see `twotower tasks`) or any environment id."""

    task: Annotated[str, Positional]
    """A recipe such as swimmer, or an environment id such as Ant-v5, module:Env-v0 or dmc:cartpole-swingup."""
    preset: PresetName = "paper"
    """Where the defaults come from: the paper's recipe; fast: ITT with modern evolution strategies; ars: Augmented
    Random Search (linear explicit policy)."""
    env_id: str | None = None
    """The environment's id where it is not the task's name (a recipe fills it in)."""
    seed: int = 0
    """Seed of everything random in the run."""
    iterations: int | None = None
    """Iterations to train; None takes the recipe's."""
    steps: int | None = None
    """Stop at the first iteration that reaches this many environment steps; None takes the preset's."""
    workers: int | None = None
    """Workers; None takes one a core, over all nodes where there are several. The result does not depend on it."""
    executor: ExecutorName = "processes"
    """Where workers live: processes of their own, inside this one, or on a Ray cluster."""
    worker_timeout: float = 300.0
    """A worker that makes no step for this many seconds counts as dead, and another does its work again."""
    run_dir: str | None = None
    """Folder of the run; None makes runs/TASK-DATE."""
    evaluation_episodes: int = 20
    """Fresh episodes of the final evaluation."""
    checkpoint_seconds: float = 30.0
    """A checkpoint is written when this much time has passed since the last."""
    plain: bool = False
    """Plain lines instead of the live view."""
    log: tuple[LogName, ...] = ()
    """Where to send the metrics as well: tensorboard (into the run's folder), wandb (Weights & Biases), or both."""
    policy: PolicyConfig = field(default_factory=PolicyConfig)
    search: SearchConfig = field(default_factory=SearchConfig)
    candidates: CandidatesConfig = field(default_factory=CandidatesConfig)
    strategy: StrategyConfig = field(default_factory=StrategyConfig)
    env: EnvConfig = field(default_factory=EnvConfig)
    ray: RayConfig = field(default_factory=RayConfig)

    def __post_init__(self) -> None:
        check(self)


DEFAULT_ITERATIONS = 200
MAX_SEED = 2**63 - 1


def check(config: TrainConfig) -> None:
    """Refuse values no run could use, naming the option and what it takes."""
    policy, candidates, strategy, env = config.policy, config.candidates, config.strategy, config.env
    for name, value in (
        ("iterations", config.iterations),
        ("steps", config.steps),
        ("workers", config.workers),
        ("evaluation-episodes", config.evaluation_episodes),
        ("candidates.count", candidates.count),
        ("candidates.final-count", candidates.final_count),
        ("strategy.num-directions", strategy.num_directions),
        ("strategy.lazy", strategy.lazy),
        ("strategy.episodes-per-member", strategy.episodes_per_member),
        ("strategy.top-directions", strategy.top_directions),
        ("strategy.decay-steps", strategy.decay_steps),
        ("env.slots", env.slots),
        ("env.max-episode-steps", env.max_episode_steps),
        ("policy.latent", policy.latent),
        *(("policy.state-hidden", width) for width in policy.state_hidden),
        *(("policy.action-hidden", width) for width in policy.action_hidden),
        *(("policy.hidden", width) for width in policy.hidden),
    ):
        if value is not None and value < 1:
            raise UserError(f"--{name} must be at least 1, not {value}.")
    for name, value in (
        ("candidates.count-growth", candidates.count_growth),
        ("strategy.sigma", strategy.sigma),
        ("strategy.sigma-decay", strategy.sigma_decay),
        ("strategy.step-size", strategy.step_size),
        ("strategy.step-decay", strategy.step_decay),
        ("strategy.max-speed", strategy.max_speed),
        ("policy.temperature", policy.temperature),
        ("policy.refinement-radius", policy.refinement_radius),
        ("policy.refinement-shrink", policy.refinement_shrink),
    ):
        if value is not None and not (math.isfinite(value) and value > 0):
            raise UserError(f"--{name} must be a positive number, not {value}.")
    if not 0 <= config.seed <= MAX_SEED:
        raise UserError(f"--seed must be between 0 and 2^63 - 1, not {config.seed}.")
    if not 0 < strategy.discount <= 1:
        raise UserError(f"--strategy.discount must be in (0, 1], not {strategy.discount}.")
    for name, value in (
        ("strategy.lazy-decay", strategy.lazy_decay),
        ("strategy.weight-decay", strategy.weight_decay),
        ("strategy.initial-scale", strategy.initial_scale),
        ("strategy.initial-state-scale", strategy.initial_state_scale),
    ):
        if not (math.isfinite(value) and value >= 0):
            raise UserError(f"--{name} must be 0 or more, not {value}.")
    for name, value in (
        ("strategy.momentum", strategy.momentum),
        ("strategy.second-momentum", strategy.second_momentum),
    ):
        if not 0 <= value < 1:
            raise UserError(f"--{name} must be in [0, 1), not {value}.")
    if not math.isfinite(strategy.survival_bonus):
        raise UserError(f"--strategy.survival-bonus must be a finite number, not {strategy.survival_bonus}.")
    if policy.refinements < 0:
        raise UserError(f"--policy.refinements must be 0 or more, not {policy.refinements}.")
    if not config.checkpoint_seconds >= 0:
        raise UserError(f"--checkpoint-seconds must be 0 or more, not {config.checkpoint_seconds}.")
    if config.search.queries < 0:
        raise UserError(f"--search.queries must be 0 or more, not {config.search.queries}.")
    if not 0 <= config.search.audit <= 1:
        raise UserError(f"--search.audit must be between 0 and 1, not {config.search.audit}.")
    if not 0 < config.worker_timeout <= 1e6:
        raise UserError(f"--worker-timeout must be positive and at most 1e6 seconds, not {config.worker_timeout}.")
    for name, value in (("count", candidates.count), ("final-count", candidates.final_count)):
        if value > 2**24:
            raise UserError(f"--candidates.{name} must be at most 2^24, not {value}.")
    if config.ray.address is not None and not is_ray_address(config.ray.address):
        raise UserError(f"--ray.address must be auto or HOST:PORT, not {config.ray.address!r}.")
    env_kwargs(env)


def is_ray_address(address: str) -> bool:
    """Whether this is `auto` or HOST:PORT."""
    host, _, port = address.rpartition(":")
    whole = bool(host) and "/" not in host and port.isascii() and port.isdigit() and len(port) < 6
    return address == "auto" or (whole and 0 < int(port) < 2**16)


def env_kwargs(env: EnvConfig) -> dict[str, Any]:
    """The environment's keyword arguments as a dictionary."""
    try:
        kwargs = json.loads(env.kwargs)
    except (ValueError, RecursionError) as error:
        raise UserError(f"--env.kwargs is not JSON ({error}): {env.kwargs!r}") from error
    if not isinstance(kwargs, dict):
        raise UserError(f'--env.kwargs must be a JSON object such as {{"g": 5}}, not {env.kwargs!r}.')
    return kwargs


def to_dict(config: TrainConfig) -> dict[str, Any]:
    """The configuration as plain data for config.json and policy files."""
    return dataclasses.asdict(config)


Config = TypeVar("Config")


def from_dict(cls: type[Config], data: Any, where: str = "config") -> Config:
    """Rebuild a configuration from plain data, refusing unknown names and wrong types in words."""
    if not isinstance(data, dict):
        raise UserError(f"{where} must be an object, not {type(data).__name__}.")
    hints = get_type_hints(cls)
    unknown = sorted(set(data) - set(hints))
    if unknown:
        raise UserError(f"{where} has an unknown field {unknown[0]!r}{nearest(unknown[0], hints)}.")
    values = {name: _from_plain(hints[name], value, f"{where}.{name}") for name, value in data.items()}
    try:
        return cls(**values)
    except TypeError as error:
        raise UserError(f"{where} is incomplete: {error}.") from error


def _from_plain(hint: Any, value: Any, where: str) -> Any:
    value = value.item() if getattr(value, "shape", None) == () else value  # a NumPy scalar
    if dataclasses.is_dataclass(hint):
        return from_dict(hint, value, where)  # pyright: ignore[reportArgumentType]
    origin = get_origin(hint)
    if origin is Literal:
        if value not in get_args(hint):
            raise UserError(f"{where} must be one of {', '.join(map(str, get_args(hint)))}, not {value!r}.")
        return value
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise UserError(f"{where} must be a list, not {value!r}.")
        return tuple(_from_plain(get_args(hint)[0], item, where) for item in value)
    choices = get_args(hint) or (hint,)
    if float in choices and type(value) is int and abs(value) < 2**1023:  # beyond, float() overflows
        return float(value)
    if type(value) not in choices:
        names = " or ".join(getattr(choice, "__name__", str(choice)) for choice in choices)
        raise UserError(f"{where} must be {names}, not {value!r}.")
    return value


def nearest(name: str, known: Any) -> str:
    """A hint such as ` (did you mean 'swimmer'?)`, or nothing."""
    spelled = {k.lower(): k for k in known}
    matches = difflib.get_close_matches(name.lower(), spelled, n=1, cutoff=0.5)
    return f" (did you mean {spelled[matches[0]]!r}?)" if matches else ""

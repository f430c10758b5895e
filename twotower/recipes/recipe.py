"""What a recipe states, and how it becomes a configuration."""

from dataclasses import dataclass
from typing import Literal

from twotower.config import CandidatesConfig, PolicyConfig, PolicyKind, StrategyConfig, TrainConfig
from twotower.errors import UserError
from twotower.recipes.published import table


@dataclass(frozen=True)
class Recipe:
    """One row of the paper's tables; the defaults are what most of its Gym rows share."""

    name: str
    """What users type."""
    env_id: str
    """The nearest environment that runs today."""
    paper_ids: tuple[str, ...]
    """The paper's names for it; the first is the key of its tables."""
    iterations: int
    """How long it trains."""
    iterations_from: Literal["paper", "ours"]
    """Whether the paper states the iterations or we chose them."""
    width: int
    """Width of every hidden layer and of the latent space."""
    state_layers: int = 0
    """Hidden layers of the state tower."""
    action_layers: int = 0
    """Hidden layers of the action tower."""
    layers: int = 1
    """Hidden layers of the one-tower and of the explicit policy."""
    activation: Literal["relu", "linear"] = "relu"
    """Activation of the hidden layers."""
    sigma: float = 1.0
    """σ of the perturbations."""
    explicit_sigma: float | None = None
    """σ of the explicit policy, where it differs."""
    num_directions: int | None = None
    """M; None is the number of parameters."""
    candidates: CandidatesConfig = CandidatesConfig()
    """How many candidate actions, how they enter the network, how long they are kept."""
    towers: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    """An ablation's hidden widths (state tower, action tower), in place of the layers above."""
    note: str = ""
    """What a reader of the results should know."""

    def config(self, kind: PolicyKind = "itt", seed: int = 0) -> TrainConfig:
        """The paper's experiment with this task as a configuration."""
        sigma = self.explicit_sigma if kind == "explicit" and self.explicit_sigma else self.sigma
        return TrainConfig(
            task=self.name,
            env_id=self.env_id,
            seed=seed,
            iterations=self.iterations,
            policy=self._policy(kind),
            candidates=self.candidates,
            strategy=StrategyConfig(sigma=sigma, num_directions=self.num_directions),
        )

    def _policy(self, kind: PolicyKind) -> PolicyConfig:
        if kind == "itt":
            state, action = self.towers or ((self.width,) * self.state_layers, (self.width,) * self.action_layers)
            return PolicyConfig(latent=self.width, state_hidden=state, action_hidden=action, activation=self.activation)
        if self.towers:
            raise UserError(f"{self.name} is a two-tower ablation: use --kind itt, not {kind}.")
        return PolicyConfig(kind=kind, hidden=(self.width,) * self.layers, activation=self.activation)

    def published_num_params(self) -> dict[str, int]:
        """The printed number of parameters of each policy kind."""
        return table("num_params").get(self.paper_ids[0], {})

    def published_scores(self) -> dict[str, tuple[float, float]]:
        """The printed final score of each policy kind: mean and standard deviation over ten seeds."""
        scores = table("final_scores_mean_std_10_seeds").get(self.paper_ids[0], {})
        return {kind: (mean, std) for kind, (mean, std) in scores.items()}

"""The paper's five DeepMind Control tasks: width 20, M = 500, σ = 0.1, N = 10,000 candidates an iteration."""

from twotower.config import CandidatesConfig
from twotower.recipes.recipe import Recipe

UNPRINTED = "the paper prints no final score, only a curve"
UNUSUAL = "the published score is about twice what others report; the start or target distribution must have differed"


def _recipe(name: str, env_id: str, paper_id: str, note: str = "") -> Recipe:
    return Recipe(
        name,
        env_id,
        (f"DMCS:{paper_id}", paper_id),
        iterations=500,
        iterations_from="ours",
        width=20,
        state_layers=3,
        action_layers=1,
        layers=5,
        sigma=0.1,
        num_directions=500,
        candidates=CandidatesConfig(count=10_000, refresh="iteration"),
        note=note,
    )


DEEPMIND_CONTROL = (
    _recipe("fish-swim", "FishSwim-v1", "FishSwim"),
    _recipe("swimmer6", "SwimmerSwimmer6-v1", "Swimmer6", UNUSUAL),
    _recipe("swimmer15", "SwimmerSwimmer15-v1", "Swimmer15", UNUSUAL),
    _recipe("hopper-stand", "HopperStand-v1", "HopperStand", UNPRINTED),
    _recipe("walker-walk", "WalkerWalk-v1", "WalkerWalk", UNPRINTED),
)

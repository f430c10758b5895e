"""Golden: the recipes' networks have the sizes the paper prints."""

import json
from importlib.resources import files

import pytest

from twotower import recipes
from twotower.config import PolicyConfig, PolicyKind, TrainConfig
from twotower.errors import UserError

PUBLISHED = json.loads((files("twotower") / "experiments" / "published.json").read_text(encoding="utf-8"))
KINDS: tuple[PolicyKind, ...] = ("itt", "iot", "explicit")

# (observation size, size of the action as the network sees it), from the environments themselves
SIZES = {
    "swimmer": (8, 2),
    "lunarlander": (8, 2),
    "hopper": (11, 3),
    "halfcheetah": (17, 6),
    "walker2d": (17, 6),
    "cartpole": (4, 1),
    "mountaincar": (2, 1),
    "acrobot": (6, 1),
    "mountaincarcontinuous": (2, 1),
    "invertedpendulum": (5, 1),
    "fish-swim": (24, 5),
    "swimmer6": (25, 5),
    "swimmer15": (61, 14),
    "hopper-stand": (15, 4),
    "walker-walk": (24, 6),
}


def mlp(*sizes: int) -> int:
    """Parameters of a bias-free network."""
    return sum(m * n for m, n in zip(sizes, sizes[1:], strict=False))


def count(policy: PolicyConfig, s: int, a: int) -> int:
    """Parameters of a policy, per the reading in the paper's tables."""
    if policy.kind == "itt":
        assert policy.latent is not None
        return mlp(s, *policy.state_hidden, policy.latent) + mlp(a, *policy.action_hidden, policy.latent)
    return mlp(s + a, *policy.hidden, 1) if policy.kind == "iot" else mlp(s, *policy.hidden, a)


def test_the_fifteen_tasks_in_the_papers_order() -> None:
    assert recipes.names() == list(SIZES)
    assert len(recipes.names()) == 15
    assert [recipes.get(name).paper_ids[0] for name in recipes.names()] == list(PUBLISHED["num_params"])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", SIZES)
def test_parameter_counts_are_the_printed_ones(name: str, kind: PolicyKind) -> None:
    recipe = recipes.get(name)
    printed = PUBLISHED["num_params"][recipe.paper_ids[0]][kind]
    assert recipe.published_num_params()[kind] == printed
    misfit = (name, kind) == ("invertedpendulum", "iot")  # printed 13, which no width gives
    assert count(recipe.config(kind).policy, *SIZES[name]) == (14 if misfit else printed)


@pytest.mark.parametrize("name", recipes.ablations())
def test_ablations_have_the_printed_counts_and_say_they_are_inferred(name: str) -> None:
    recipe = recipes.get(name)
    task, variant = name.split("-", 1)
    printed = PUBLISHED["ablation_num_params"][recipe.paper_ids[0]][variant.replace("-", "_")]
    assert count(recipe.config().policy, *SIZES[task]) == printed
    assert "inferred" in recipe.note
    assert recipe.env_id == recipes.get(task).env_id
    assert recipe.config().strategy == recipes.get(task).config().strategy
    with pytest.raises(UserError, match="two-tower"):
        recipe.config("iot")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", SIZES)
def test_sigma_is_the_papers(name: str, kind: PolicyKind) -> None:
    recipe = recipes.get(name)
    assert recipe.config(kind).strategy.sigma == PUBLISHED["sigma"][recipe.paper_ids[0]][kind]


@pytest.mark.parametrize("name", SIZES)
def test_settings_follow_the_papers_two_families(name: str) -> None:
    config = recipes.get(name).config(seed=7)
    assert isinstance(config, TrainConfig)
    assert (config.task, config.seed, config.policy.kind) == (name, 7, "itt")
    assert config.env_id == recipes.get(name).env_id
    deepmind = recipes.get(name).paper_ids[0].startswith("DMCS:")
    assert config.strategy.num_directions == (500 if deepmind else None)
    assert config.candidates.count == (10_000 if deepmind else 1000)
    assert config.candidates.refresh == ("iteration" if deepmind else "step")
    assert config.candidates.encoding == ("scalar" if name in ("cartpole", "mountaincar", "acrobot") else "onehot")
    assert config.policy.activation == ("linear" if name == "swimmer" else "relu")
    if deepmind:
        assert config.policy.latent == 20


def test_iterations_are_the_papers_where_it_states_them() -> None:
    stated = {key: row["iterations"] for key, row in PUBLISHED["wall_clock_hours_24_cores"].items()}
    horizons = PUBLISHED["paired_t_test_iterations"]
    stated |= {key: horizons[key]["iot"] for key in ("MountainCar-v0", "MountainCarContinuous-v0")}
    for recipe in map(recipes.get, recipes.names()):
        assert recipe.config().iterations == stated.get(recipe.paper_ids[0], recipe.iterations)
        assert recipe.iterations_from == ("paper" if recipe.paper_ids[0] in stated else "ours")


def test_halfcheetah_reads_as_the_table_does() -> None:
    itt = recipes.get("halfcheetah").config().policy
    assert (itt.latent, itt.state_hidden, itt.action_hidden) == (6, (6, 6, 6), (6,))
    assert recipes.get("halfcheetah").config("explicit").policy.hidden == (6,) * 5


@pytest.mark.parametrize(
    ("task", "name"),
    [
        ("Swimmer", "swimmer"),
        ("Hopper-v4", "hopper"),
        ("HOPPER-V2", "hopper"),
        ("Walker2d-v1", "walker2d"),
        ("walkerwalk-v1", "walker-walk"),
        ("DMCS:FishSwim", "fish-swim"),
        ("swimmer6", "swimmer6"),
        ("SwimmerSwimmer6-v1", "swimmer6"),
        ("hopper-itt-2", "hopper-itt-2"),
    ],
)
def test_find_takes_any_name_in_any_case(task: str, name: str) -> None:
    found = recipes.find(task)
    assert found is not None
    assert found.name == name


def test_unknown_names() -> None:
    assert recipes.find("Ant-v5") is None
    with pytest.raises(UserError, match="did you mean 'swimmer'"):
        recipes.get("swimer")


def test_published_scores() -> None:
    assert recipes.get("hopper").published_scores()["itt"] == (2670.37, 225.53)
    assert recipes.get("hopper-stand").published_scores() == {}
    printed = PUBLISHED["final_scores_mean_std_10_seeds"]
    assert sum(bool(recipes.get(name).published_scores()) for name in recipes.names()) == len(printed) == 13

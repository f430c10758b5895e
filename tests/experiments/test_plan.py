"""What runs are called, so that they are found again, and how short a quick budget makes them."""

from dataclasses import replace

import pytest

from twotower import recipes
from twotower.config import StrategyConfig
from twotower.experiments import RESULTS, get
from twotower.experiments.costs import core_seconds
from twotower.experiments.plan import Choice, Planned, base, configuration_hash, planned


def test_names_stay_what_they_are() -> None:
    """Runs kept from earlier sessions are found by these."""
    run = planned(Choice("paper"), base("swimmer", "itt", 3))
    assert run.name == "swimmer-itt-s3-" + configuration_hash(run.config) + "-500it"
    assert configuration_hash(run.config) == "52e8b5e2"
    assert planned(Choice("paper", workers=2), base("swimmer"), "lazy", timed=True).name.endswith("-500it-timed2")


def test_the_hash_is_of_what_is_learnt() -> None:
    config = base("swimmer")
    same = replace(config, seed=5, iterations=7, workers=2, executor="serial", run_dir="x", checkpoint_seconds=1.0)
    assert configuration_hash(same) == configuration_hash(config)
    for other in (replace(config, evaluation_episodes=3), replace(config, strategy=StrategyConfig(sigma=0.5))):
        assert configuration_hash(other) != configuration_hash(config)


def test_odd_names_make_good_folders() -> None:
    name = Planned(base("module/x:Env-v0", "itt", 1, iterations=4)).name
    assert name.startswith("module-x-Env-v0-itt-s1-") and name.endswith("-4it")


@pytest.mark.parametrize("task", recipes.names())
def test_quick_runs_are_short_and_paper_runs_are_the_papers(task: str) -> None:
    config = base(task)
    quick, paper = planned(Choice(), config), planned(Choice("paper"), config)
    assert quick.short and quick.config.iterations < (config.iterations or 0)
    assert not paper.short and replace(paper.config, evaluation_episodes=20) == config
    assert planned(Choice("paper", iterations=5), config).config.iterations == 5


@pytest.mark.parametrize("name", RESULTS)
def test_every_result_plans_the_same_runs_for_everybody(name: str) -> None:
    result = get(name)
    for size in ("quick", "paper"):
        first, second = ([run.name for run in result.plan(Choice(size, seeds=2, workers=2))] for _ in range(2))
        assert first == second and len(set(first)) == len(first)
    assert {run.config.seed for run in result.plan(Choice("paper", seeds=2))} <= {0, 1}


def test_a_run_costs_as_much_as_the_budget_that_is_spent_first() -> None:
    config = base("swimmer", iterations=3)  # of 41 episodes of 1,000 steps
    costs = [core_seconds(Planned(replace(config, steps=steps))) for steps in (None, 10**6, 41_000)]
    assert costs[0] == costs[1] > costs[2]
    assert core_seconds(Planned(base("swimmer-itt-1", iterations=3))) == costs[0]

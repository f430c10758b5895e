"""The picture of a decision shows the decision that was taken."""

from pathlib import Path
from typing import Any

import matplotlib.image
import numpy as np
import pytest

from tests.command import sentence, twotower
from tests.policy_files import untrained
from twotower.analysis.episode import watch
from twotower.analysis.explain import decide, draw_decision
from twotower.errors import UserError
from twotower.runs import PolicyFile
from twotower.training import evaluate_policy

HIDDEN: dict[str, Any] = {
    "candidates": {"refresh": "fixed", "count": 3000},
    "policy": {"action_hidden": (8,), "latent": 4},
}


def test_watching_replays_the_evaluation() -> None:
    for task in ("swimmer", "cartpole"):
        file = untrained(task)
        returns = evaluate_policy(file, 3).returns
        for episode, total in enumerate(returns):
            assert watch(file, episode).rewards.sum() == pytest.approx(total, rel=1e-12)


@pytest.mark.parametrize(
    ("task", "options"),
    [("swimmer", {}), ("hopper", HIDDEN), ("halfcheetah", {"candidates": {"refresh": "rollout"}}), ("acrobot", {})],
)
def test_the_best_candidate_is_the_action_taken(task: str, options: dict[str, Any]) -> None:
    file = untrained(task, options)
    for step in (0, 3, 7):
        decision = decide(file, episode=1, step=step)
        np.testing.assert_allclose(decision.candidates[decision.best], decision.taken, atol=1e-6)
        assert decision.scores.max() == decision.scores[decision.best]


def test_the_corner_is_the_closed_form() -> None:
    file = untrained("swimmer")
    cornered = untrained("swimmer", {"policy": {"search": "corner"}})
    decision = decide(file, step=0)
    assert decision.corner is not None and decision.corner_score is not None
    np.testing.assert_allclose(decision.corner, watch(cornered, last=1).actions[0])
    assert decision.corner_score >= decision.scores.max()


@pytest.mark.parametrize("name", ["srp", "srp_ranges", "srp_paper", "coreset", "brute_force"])
def test_what_a_search_looked_at(name: str) -> None:
    decision = decide(untrained("hopper", HIDDEN), step=5, search=name)
    look = decision.looked
    assert look is not None and look.name == name and look.visited is not None
    assert look.visited.sum() == look.scored
    assert look.scored == len(decision.scores) if name == "brute_force" else look.scored < len(decision.scores) / 2
    # The best of what it scored is what it found: so it did score these.
    assert decision.scores[look.found] == pytest.approx(decision.scores[look.visited].max(), rel=1e-5)
    best, mean = decision.scores.max(), decision.scores.mean()
    assert look.regret == pytest.approx((best - decision.scores[look.found]) / (best - mean), abs=1e-6)
    assert (look.buckets is not None) == name.startswith("srp")
    assert f"search {name}: " in decision.said()[-1]


def test_ties_are_told() -> None:
    file = untrained("acrobot")
    decision = decide(PolicyFile(np.zeros_like(file.theta), file.config, file.spec, 1, 1))
    assert decision.ties == 3 and decision.best == 0 and "shared by 3: the first wins" in decision.said()[1]


PICTURES: dict[str, tuple[str, dict[str, Any], str | None]] = {
    "one dimension": ("mountaincarcontinuous", {}, None),
    "two dimensions": ("swimmer", {}, "srp"),
    "three dimensions": ("hopper", HIDDEN, "coreset"),
    "discrete": ("acrobot", {"policy": {"latent": 3}}, None),
    "one tower": ("hopper", {"policy": {"kind": "iot", "hidden": (9,)}}, None),
}


@pytest.mark.parametrize("name", PICTURES)
def test_pictures(name: str, tmp_path: Path) -> None:
    task, options, search = PICTURES[name]
    draw_decision(decide(untrained(task, options), search=search), tmp_path / "a.png")
    picture = matplotlib.image.imread(tmp_path / "a.png")
    assert picture.shape[1] == 1560 and picture[..., :3].std() > 0.05
    assert (np.abs(picture[..., :3] - [0.835, 0.369, 0.0]).max(axis=-1) < 0.02).sum() > 100  # the winner's orange


def test_the_command_and_its_refusals(tmp_path: Path) -> None:
    untrained("swimmer").save(tmp_path / "policy.safetensors")
    done = twotower("explain", "policy.safetensors", "--step", "3", "--search", "srp", "--out", "a.svg", cwd=tmp_path)
    assert "step 3: 1,000 candidates" in done.stdout and "picture: a.svg" in done.stdout
    assert (tmp_path / "a.svg").read_text().startswith("<?xml")
    assert "--out must end in .png" in sentence("explain", "policy.safetensors", "--out", "a.txt", cwd=tmp_path)
    file = untrained("swimmer")
    with pytest.raises(UserError, match="Episode 0 ends after 150 steps"):
        decide(file, step=1000)
    with pytest.raises(UserError, match="--step must be 0 or more"):
        decide(file, step=-1)
    with pytest.raises(UserError, match="--episode must be between 0 and 63"):
        decide(file, episode=64)
    with pytest.raises(UserError, match="did you mean 'srp'"):
        decide(file, search="srpp")
    with pytest.raises(UserError, match="no candidates to show"):
        decide(untrained("swimmer", {"policy": {"kind": "explicit"}}))
    with pytest.raises(UserError, match="needs latents"):
        decide(untrained("swimmer", {"policy": {"kind": "iot"}}), search="srp")

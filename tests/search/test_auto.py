"""The choice follows the costs, keeps the regret it was given, and says why."""

import json
from pathlib import Path

import numpy as np
import pytest

from twotower.errors import UserError
from twotower.randomness import generator
from twotower.search import Auto, BruteForce, choose
from twotower.search.costs import KINDS, Costs, read, shipped_costs, write

COSTS = shipped_costs()


def tower_latents(count: int, size: int) -> np.ndarray:
    random = generator(size)
    return np.maximum(random.uniform(-1, 1, (count, size)) @ random.normal(size=(size, size)), 0) @ random.normal(
        size=(size, size)
    )


@pytest.mark.parametrize(
    ("count", "size", "queries", "regret", "method"),
    [
        (2**10, 6, 100, 0.01, "brute_force"),
        (2**20, 6, 1e6, 0.01, "coreset"),
        (2**20, 6, 1e6, 0.0, "box_tree"),
        (2**20, 64, 1e6, 0.0, "brute_force"),
        (2**16, 2, 1e4, 0.01, "coreset"),
    ],
)
def test_the_shipped_costs_choose(count: int, size: int, queries: float, regret: float, method: str) -> None:
    choice = choose(count, size, queries, regret, COSTS)
    assert choice.method == method and choice.seconds > 0
    assert f"{count:,} latents of {size} numbers" in str(choice)


@pytest.mark.parametrize("size", [2, 6, 20, 64])
@pytest.mark.parametrize("regret", [0.0, 0.001, 0.01])
def test_no_choice_forecasts_more_than_brute_force(size: int, regret: float) -> None:
    for count in (1, 3, 1000, 2**14, 2**20):
        for queries in (1, 1e2, 1e4, 1e6):
            brute = COSTS.of("copy", count, size) + queries * COSTS.of("scan", count, size)
            assert choose(count, size, queries, regret, COSTS).seconds <= brute * 1.0001


@pytest.mark.parametrize("size", [2, 3, 6])
@pytest.mark.parametrize("regret", [0.01, 0.001])
def test_the_regret_is_kept(size: int, regret: float) -> None:
    latents, queries = tower_latents(20_000, size), generator(1).normal(size=(400, size))
    index = Auto(queries_per_build=1e7, regret=regret).build(latents)
    assert index.choice.method != "brute_force"
    assert index.regrets(queries).mean() <= regret


def test_a_coreset_grows_until_it_is_good_enough() -> None:
    latents = tower_latents(30_000, 6)
    sizes = [len(Auto(1e7, regret).build(latents).index.tables[1][0]) for regret in (0.05, 0.005)]
    assert sizes[0] < sizes[1] < 3000


def test_a_coreset_that_does_not_pay_leaves_an_exact_answer() -> None:
    latents = generator(0).normal(size=(300, 20))  # of which nearly all win somewhere
    latents /= np.linalg.norm(latents, axis=1, keepdims=True)
    queries = generator(1).normal(size=(50, 20))
    index = Auto(queries_per_build=1e5, regret=0.01).build(latents)
    assert index.choice.method == "brute_force"
    assert np.array_equal(index.query_batch(queries), BruteForce().build(latents).query_batch(queries))


def test_past_queries_make_a_smaller_coreset() -> None:
    random = generator(3)
    latents, towards = tower_latents(50_000, 14), 3 * random.normal(size=14)
    past, future = (towards + random.normal(size=(500, 14)) for _ in range(2))
    blind = Auto(1e6, 0.01).build(latents)
    told = Auto(1e6, 0.01, past).build(latents)
    assert told.choice.method == "coreset" and told.nbytes < blind.nbytes
    assert told.regrets(future).mean() <= 0.01


def test_between_the_grid_costs_are_interpolated_and_beyond_it_grow_in_proportion() -> None:
    count, size = COSTS.counts[-1], COSTS.sizes[-1]
    assert COSTS.of("scan", count, size) == pytest.approx(COSTS.seconds["scan"][-1][-1])
    assert COSTS.of("scan", 4 * count, 2 * size) == pytest.approx(8 * COSTS.seconds["scan"][-1][-1])
    lower, upper = COSTS.of("scan", 2**16, 6), COSTS.of("scan", 2**18, 6)
    assert COSTS.of("scan", 2**17, 6) == pytest.approx(np.sqrt(lower * upper))


def test_costs_come_back_from_a_file_and_nonsense_is_refused(tmp_path: Path) -> None:
    write(COSTS, tmp_path / "new" / "costs.json")
    assert read(tmp_path / "new" / "costs.json") == COSTS
    damaged = [
        b"{",
        b"[]",
        b"{}",
        json.dumps(COSTS._replace(seconds={})._asdict()).encode(),
        json.dumps(COSTS._replace(seconds={kind: [[-1.0] * 5] * 5 for kind in KINDS})._asdict()).encode(),
    ]
    for content in damaged:
        (tmp_path / "bad").write_bytes(content)
        with pytest.raises(UserError, match="bench search --calibrate"):
            read(tmp_path / "bad")
    assert isinstance(COSTS, Costs)

"""Partitions keep the regret they measure, and score few candidates for it."""

import numpy as np
import pytest

from twotower.kernels import partitions
from twotower.randomness import generator
from twotower.search import Auto, Partitions


def latents_of(count: int, size: int) -> np.ndarray:
    """Those of a ReLU tower of six inputs."""
    random = generator(size)
    hidden = np.maximum(random.uniform(-1, 1, (count, 6)) @ random.normal(size=(6, size)), 0)
    return (hidden @ random.normal(size=(size, size))).astype(np.float32)


@pytest.mark.parametrize("regret", [0.01, 0.001])
def test_the_regret_is_kept_by_a_fraction_of_the_candidates(regret: float) -> None:
    latents, queries = latents_of(20_000, 20), generator(1).normal(size=(500, 20))
    index = Partitions(regret=regret).build(latents)
    assert index.regrets(queries).mean() <= regret
    assert index.visited.mean() < 0.5 * len(latents) and index.probes < index.cells


def test_less_regret_takes_more_probes() -> None:
    latents = latents_of(10_000, 14)
    probes = [Partitions(regret=regret).build(latents).probes for regret in (0.1, 0.01, 0.001)]
    assert probes == sorted(probes) and probes[0] < probes[2]


def test_past_queries_say_how_many_probes_are_enough() -> None:
    random = generator(3)
    latents, towards = latents_of(20_000, 20), 4 * random.normal(size=20)
    past, future = (towards + random.normal(size=(500, 20)) for _ in range(2))
    told = Partitions(regret=0.001, queries=past).build(latents)
    assert told.regrets(future).mean() <= 0.001
    assert told.probes != Partitions(regret=0.001).build(latents).probes


def test_every_candidate_lies_in_the_cell_of_its_nearest_centre() -> None:
    latents = latents_of(3000, 5)
    _, numbers, starts, centres, _ = (table[0] for table in Partitions().build(latents).tables)
    distances = ((latents[:, None] - centres.T) ** 2).sum(axis=2)
    for cell in range(len(starts) - 1):
        members = np.unique(numbers[starts[cell] * 16 : starts[cell + 1] * 16])
        assert np.allclose(distances[members, cell], distances[members].min(axis=1), atol=1e-4)
    assert set(numbers[: starts[-1] * 16]) == set(range(3000))


def test_where_no_few_cells_are_enough_all_are_probed() -> None:
    latents = generator(0).normal(size=(9000, 40)).astype(np.float32)
    index = Partitions(regret=1e-4).build(latents)
    assert index.probes == index.cells > partitions.PROBES
    assert index.regrets(generator(1).normal(size=(50, 40))).max() < 1e-6


def test_auto_takes_partitions_where_too_many_candidates_win() -> None:
    latents, queries = latents_of(50_000, 20), generator(1).normal(size=(400, 20))
    index = Auto(1e4, 0.001).build(latents)
    assert index.choice.method == "partitions"
    assert index.regrets(queries).mean() <= 0.001

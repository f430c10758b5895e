import pytest

from twotower.actions.schedule import at_iteration
from twotower.config import CandidatesConfig


@pytest.mark.parametrize(
    ("growth", "final", "counts"),
    [
        (1.0, 1000, [10, 10, 10, 10]),
        (2.0, 1000, [10, 20, 40, 1000]),
        (1.06, 1000, [10, 11, 11, 1000]),
        (0.5, 3, [10, 5, 3, 3]),
        (2.0, 3, [10, 10, 10, 10]),  # already beyond where growth ends
    ],
)
def test_count_grows_to_its_end(growth: float, final: int, counts: list[int]) -> None:
    candidates = CandidatesConfig(10, count_growth=growth, final_count=final, draw="sobol")
    found = [at_iteration(candidates, iteration) for iteration in (0, 1, 2, 10**6)]
    assert [offered.count for offered in found] == counts
    assert all(at_iteration(offered, 7) == offered and offered.draw == "sobol" for offered in found)

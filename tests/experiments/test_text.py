"""Verdicts by the rule, worked out by hand, and numbers as tables print them."""

import math

import pytest

from twotower.experiments.text import Published, cost, emphasised, number, spread, verdict

TEN = Published(100.0, 10.0, 10)


def test_the_interval_of_a_printed_mean() -> None:
    low, high = TEN.band()
    reach = 2.2622 * 10 / math.sqrt(10)  # t of 9 degrees of freedom
    assert (low, high) == pytest.approx((100 - reach, 100 + reach), abs=1e-3)


@pytest.mark.parametrize(
    ("ours", "cut", "said"),
    [
        ([100.0, 104.0], False, "agrees"),
        ([108.0, 109.0, 110.0], False, "agrees"),  # 109 ± 2.48 begins at 106.5, below TEN's end at 107.15
        ([112.0, 113.0, 114.0], True, "above although cut"),
        ([90.0, 90.1, 90.2], False, "below"),
        ([90.0, 90.1, 90.2], True, "cut"),
        ([100.0, 104.0], True, "cut"),
        ([90.0], False, "one seed"),
        ([], False, "not run"),
    ],
)
def test_verdicts(ours: list[float], cut: bool, said: str) -> None:
    assert verdict(TEN, ours, cut) == said


def test_without_spread_equal_means_agree() -> None:
    assert verdict(Published(500.0, 0.0, 10), [500.0, 500.0], False) == "agrees"
    assert verdict(Published(500.0, 0.0, 10), [499.0, 499.0], False) == "below"
    assert verdict(None, [1.0, 2.0], False) == "nothing printed"


def test_numbers() -> None:
    assert [number(v) for v in (2670.37, 344.13, -72.72, 0, 0.0034, 1.07e6, math.nan)] == [
        "2,670", "344.1", "−72.72", "0", "0.0034", "1,070,000", "-",
    ]  # fmt: skip
    assert spread([1.0, 3.0]) == "2.00 ± 1.41" and spread([2.0]) == "2.00"
    assert cost(90) == "1.5 core-minutes" and cost(36000) == "10 core-hours"


def test_best_and_second_are_marked() -> None:
    assert emphasised(["a", "b", "c"], [3.0, 1.0, 2.0]) == ["**a**", "b", "<u>c</u>"]
    assert emphasised(["a", "b", "c"], [3.0, 3.0, math.nan]) == ["a", "b", "c"]
    assert emphasised(["a", "b", "c"], [3.0, 3.0, 1.0]) == ["**a**", "**b**", "<u>c</u>"]

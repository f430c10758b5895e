"""How many candidates an iteration offers."""

from dataclasses import replace

from twotower.config import CandidatesConfig


def at_iteration(candidates: CandidatesConfig, iteration: int) -> CandidatesConfig:
    """The choices with N as it is at an iteration, for good: what workers act on and policy files keep."""
    if candidates.count_growth == 1.0:
        return candidates
    low, high = sorted((candidates.count, candidates.final_count))
    try:
        count = round(candidates.count * candidates.count_growth**iteration)
    except OverflowError:
        count = high
    return replace(candidates, count=min(max(count, low), high), count_growth=1.0)

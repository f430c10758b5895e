"""Bookkeeping of a step: rewards into returns, and whether any episode ended."""

from numba import njit


@njit(cache=True)
def account(
    slots, rewards, dones, starting, actions, discount, bonus, low, span,
    totals, discounted, weights, lengths, saturations,
):  # fmt: skip
    """Add one transition of n slots to their episodes' sums; returns whether any slot needs attention."""
    attention = False
    for n in range(slots.size):
        if starting[n]:
            attention = True
            continue
        slot = slots[n]
        totals[slot] += rewards[n]
        discounted[slot] += weights[slot] * (rewards[n] - bonus)
        weights[slot] *= discount
        lengths[slot] += 1
        for d in range(low.size):
            if span[d] > 0:
                saturations[slot] += abs(2.0 * (actions[n, d] - low[d]) / span[d] - 1.0) / low.size
        attention = attention or dones[n]
    return attention


@njit(cache=True)
def observe(slots, observations, mean, scale, sums, squares, normalised):
    """Normalise n slots' observations (n, s), and add their deviations from the mean to the slots' sums."""
    for n in range(slots.size):
        slot = slots[n]
        for d in range(mean.size):
            deviation = observations[n, d] - mean[d]
            sums[slot, d] += deviation
            squares[slot, d] += deviation * deviation
            normalised[n, d] = deviation * scale[d]

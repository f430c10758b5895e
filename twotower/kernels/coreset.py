"""Growing a coreset: the winners of more and more directions, until directions not among them regret little.

What most directions cost is one pass over all candidates each. Directions that lie in a few thin cones, as a policy's
queries do, need far less: a cone is wrapped in a box, and whatever loses to the cone's winner among a sample in the
whole box is ruled out for all of the cone's directions at once.
"""

import numpy as np
from numba import njit, uint64

from twotower.kernels.counter import mix64, subkey
from twotower.kernels.layout import LANES, TILE
from twotower.kernels.scan import aligned, turn, winners

FIRST = 64
SAFETY, LEAST_SAFETY = 4, 8  # so many past queries to one random direction, answered from a sample; and at least
MOST = 2**17  # directions, where no past queries limit them
GROUPS = 16  # cones at most
# Whatever its frequency p, a kind of query that n directions lack adds p (1 - p)^n ρ ≤ ρ / (e n) to the expected
# regret, if others' winners regret ρ there: at most this over n for ρ up to 0.68.
RARE = 0.25
SURE = 3.0  # standard errors that the mean of the directions may be off
ROUNDING = np.float32(1e-5)


@njit(cache=True)
def gaussian(key, number, direction):
    """Fill a direction with standard normal numbers (Box and Muller), at random for its number."""
    own = subkey(key, number)
    for c in range(0, direction.size, 2):
        bits = mix64(own + uint64(c))
        radius = np.sqrt(-2 * np.log((np.float64(bits >> uint64(40)) + 1) * 2.0**-24))
        angle = 2 * np.pi * np.float64(bits & uint64(0xFFFFFF)) * 2.0**-24
        direction[c] = radius * np.cos(angle)
        if c + 1 < direction.size:
            direction[c + 1] = radius * np.sin(angle)


@njit(cache=True)
def draw(past, order, key, begin, directions):
    """Fill directions (n, d) with unit past queries drawn without replacement, or Gaussian ones without past.

    Zeros stay. What was drawn before is order[:begin].
    """
    for k in range(directions.shape[0]):
        if past.shape[0] == 0:
            gaussian(key, begin + k, directions[k])
            continue
        other = begin + k + np.int64(subkey(key, begin + k) % uint64(order.size - begin - k))
        order[begin + k], order[other] = order[other], order[begin + k]
        query, largest, square = past[order[begin + k]], 0.0, 0.0
        for c in range(query.size):
            largest = max(largest, abs(query[c]))
        for c in range(query.size):
            square += (query[c] / largest) ** 2 if largest > 0 else 0.0
        for c in range(query.size):
            directions[k, c] = query[c] / largest / np.sqrt(square) if largest > 0 else 0.0


@njit(cache=True)
def grow(latents, past, key, wanted, most, seconds):
    """Members, directions asked, their mean regret, what it may be off, and whether the wanted regret was reached.

    seconds holds what is spent anyhow, a direction's pass over all candidates, all queries to an index of 0 members
    and to a member more, and what growing may come to in all.
    """
    count, size = latents.shape
    sample = latents[:: stride(count)].copy()
    order = np.arange(past.shape[0])
    limit = min(order.size if past.shape[0] > 0 else MOST, most)
    directions, best = np.empty((limit if past.shape[0] > 0 else 0, size), np.float32), np.empty(limit, np.float32)
    places, mean = np.empty(limit, np.int64), mean_row(sample)
    asked, regret, error, rate, spent = 0, np.inf, np.inf, 0.8, seconds[0]
    members = np.zeros(0, np.int64)
    n = FIRST
    while RARE > wanted * n:
        n *= 2
    while limit > 0:
        n = min(n, limit)
        if directions.shape[0] < n:
            directions = np.concatenate((directions, np.empty((n - directions.shape[0], size), np.float32)))
        draw(past, order, key, asked, directions[asked:n])
        room = seconds[4] - spent - seconds[2] - seconds[3] * members.size
        cost = ask(latents, sample, directions[asked:n], best[asked:n], places[asked:n], room, seconds)
        if cost < 0:
            break
        spent += cost
        members = np.unique(places[:n])
        earlier, regret, error = regret, 0.0, 0.0
        regret, error = leave_one_out(latents, directions[:n], best[:n], places[:n], mean, members)
        if regret + error <= wanted:
            return with_safety(members, sample, stride(count), key, n), n, regret, error, True
        if 0 < regret < earlier < np.inf:
            rate = min(max(np.log2(earlier / regret), 0.6), 2.0)
        times = max(min(((regret + error) / wanted) ** (1 / rate), 1e6), 1.0)
        needed = spent + cost / (n - asked) * n * (times - 1) + seconds[2] + seconds[3] * members.size * times**0.6
        asked = n
        if n == limit or needed > seconds[4] or 2 * members.size > count:
            break
        n *= 2
    return members, asked, regret, error, False


@njit(cache=True)
def stride(count):
    """Every how many candidates one belongs to the sample."""
    return max(count // min(max(count // 16, 256), 4096), 1)


@njit(cache=True)
def mean_row(rows):
    """The mean of rows (n, d), in float64."""
    mean = np.zeros(rows.shape[1])
    for i in range(rows.shape[0]):
        for c in range(mean.size):
            mean[c] += rows[i, c]
    return mean / rows.shape[0]


@njit(cache=True)
def with_safety(members, sample, step, key, asked):
    """The members, and the winners of some random directions among a sample of every so many candidates."""
    directions = np.empty((max(asked // SAFETY, LEAST_SAFETY), sample.shape[1]), np.float32)
    best, places = np.empty(directions.shape[0], np.float32), np.empty(directions.shape[0], np.int64)
    for k in range(directions.shape[0]):
        gaussian(key, -1 - k, directions[k])
    winners(directions, sample, best, places)
    return np.unique(np.concatenate((members, places * step)))


@njit(cache=True)
def leave_one_out(latents, directions, best, places, mean, members):
    """The mean regret of each direction among the winners of all others, and what it may be off."""
    total = squares = 0.0
    wins = np.zeros(members.size, np.int64)
    mine = np.searchsorted(members, places)
    for k in range(mine.size):
        wins[mine[k]] += 1
    rows = np.empty((members.size, latents.shape[1]), np.float32)
    for m in range(members.size):
        rows[m] = latents[members[m]]
    for k in range(mine.size):
        if wins[mine[k]] > 1:
            continue
        second, middle = -np.inf, product(mean, directions[k])
        for m in range(members.size):
            if m != mine[k]:
                second = max(second, product(rows[m], directions[k]))
        if best[k] > middle:
            regret = min(max((best[k] - second) / (best[k] - middle), 0.0), 1.0)
            total += regret
            squares += regret * regret
    n = mine.size
    regret = total / n
    return regret, SURE * np.sqrt(max(squares / n - regret * regret, 0.0) / n) + RARE / n


@njit(cache=True)
def ask(latents, sample, directions, best, places, room, seconds):
    """The winners of directions among all candidates; returns the seconds it took by forecast, or -1 without room."""
    count, size = latents.shape
    cost = seconds[1] * directions.shape[0]
    if count > 2 * sample.shape[0]:
        planes, offsets = np.empty((GROUPS, size, size), np.float32), np.empty((GROUPS, size), np.float32)
        ranks = np.zeros(GROUPS, np.int64)
        winners(directions, sample, best, places)
        if wrap(sample, directions, places, planes, offsets, ranks):
            left = rule_out(sample, planes, offsets, ranks).size / sample.shape[0]
            cheap = seconds[1] * (1.5 * ranks.sum() + 8 + left * directions.shape[0])
            if cheap < 0.8 * cost:
                if cheap > room:
                    return -1.0
                alive = rule_out(latents, planes, offsets, ranks)
                rows = np.empty((alive.size, size), np.float32)
                for i in range(alive.size):
                    rows[i] = latents[alive[i]]
                winners(directions, rows, best, places)
                for k in range(places.size):
                    places[k] = alive[places[k]]
                return cheap
    if cost > room:
        return -1.0
    winners(directions, latents, best, places)
    return cost


@njit(cache=True)
def wrap(sample, directions, places, planes, offsets, ranks):
    """Wrap each cone, the directions with the same winner among the sample, in a box; whether there are few enough.

    A box has a middle direction and half-axes, planes[g, : ranks[g]]; their products with the winner are offsets.
    """
    leaders, groups = np.empty(GROUPS, np.int64), 0
    own = np.full(directions.shape[0], -1)
    for k in range(directions.shape[0]):
        if product(directions[k], directions[k]) == 0:
            continue
        g = 0
        while g < groups and leaders[g] != places[k]:
            g += 1
        if g == groups:
            if groups == GROUPS:
                return False
            leaders[g] = places[k]
            groups += 1
        own[k] = g
    for g in range(groups):
        ranks[g] = box(directions, own, g, planes[g])
        for r in range(ranks[g]):
            offsets[g, r] = product(planes[g, r], sample[leaders[g]])
        for c in range(sample.shape[1]):  # or the winner itself might lose
            offsets[g, 0] -= ROUNDING * abs(planes[g, 0, c] * sample[leaders[g], c])
    return True


@njit(cache=True)
def box(directions, own, group, planes):
    """Fill planes with the middle of a cone's directions (n, d) and the half-axes around it; returns how many.

    Directions are scaled to the same product with their mean, and axes point to what is farthest from all before.
    """
    size = directions.shape[1]
    rows, middle, axis = np.empty(directions.shape), np.zeros(size), np.empty(size)
    count = 0
    for k in range(own.size):
        if own[k] == group:
            rows[count] = directions[k]
            count += 1
    rows = rows[:count]
    add_rows(rows, middle)
    square = product(middle, middle) / count
    for k in range(count):
        along = product(rows[k], middle)
        if along > 0.1 * square:
            for c in range(size):
                rows[k, c] *= square / along
    middle[:] = 0
    add_rows(rows, middle)
    for c in range(size):
        middle[c] /= count
        for k in range(count):
            rows[k, c] -= middle[c]
    rank = 1
    while rank < size:
        farthest, largest = 0, 0.0
        for k in range(count):
            length = product(rows[k], rows[k])
            if length > largest:
                farthest, largest = k, length
        if largest <= 1e-12 * square:
            break
        for c in range(size):
            axis[c] = rows[farthest, c] / np.sqrt(largest)
        low = high = 0.0
        for k in range(count):
            along = product(rows[k], axis)
            low, high = min(low, along), max(high, along)
            for c in range(size):
                rows[k, c] -= along * axis[c]
        for c in range(size):
            middle[c] += (low + high) / 2 * axis[c]
            planes[rank, c] = (high - low) / 2 * axis[c]
        rank += 1
    planes[0] = middle
    return rank


@njit(cache=True)
def add_rows(rows, total):
    """Add rows (n, d) to a total (d,)."""
    for k in range(rows.shape[0]):
        for c in range(total.size):
            total[c] += rows[k, c]


@njit(cache=True)
def product(x, y):
    """The inner product of two short vectors."""
    total = x[0] * y[0]
    for c in range(1, x.size):
        total += x[c] * y[c]
    return total


@njit(cache=True)
def rule_out(latents, planes, offsets, ranks):
    """The rows of latents (N, d) that may exceed some cone's winner in its box."""
    count, size = latents.shape
    alive, used = np.empty(count, np.int32), 0
    room = aligned((size + 2) * TILE).reshape(size + 2, TILE)
    tile, sums, bounds, hits = room[:size], room[size], room[size + 1], np.empty(TILE, np.bool_)
    for begin in range(0, count, TILE):
        width = min(TILE, count - begin)
        if width < TILE or not turn(latents, begin, tile, size, TILE // LANES, 1, TILE // LANES):
            for c in range(size):
                for t in range(width):
                    tile[c, t] = latents[begin + t, c]
        hits[:] = False
        for g in range(GROUPS):
            if ranks[g] == 0:
                break
            bounds[:] = -offsets[g, 0]
            add_plane(planes, g, 0, tile, np.float32(0), sums, bounds)
            for r in range(1, ranks[g]):
                add_plane(planes, g, r, tile, offsets[g, r], sums, bounds)
            for t in range(TILE):
                hits[t] |= bounds[t] >= 0
        for part in range(0, width, 64):
            end = min(part + 64, width)
            if np.any(hits[part:end]):
                for t in range(part, end):
                    alive[used] = begin + t
                    used += hits[t]
    return alive[:used]


@njit(cache=True, fastmath={"contract"})
def add_plane(planes, g, r, tile, offset, sums, bounds):
    """Add p·x - o of plane p = planes[g, r] to the bounds of a tile (d, TILE), its magnitude from r = 1 on."""
    size, last = tile.shape[0], tile.shape[0] - 1
    for first in range(0, size, 4):
        c1, c2, c3 = min(first + 1, last), min(first + 2, last), min(first + 3, last)
        w0, w1 = planes[g, r, first], planes[g, r, c1] if first + 1 <= last else np.float32(0)
        w2 = planes[g, r, c2] if first + 2 <= last else np.float32(0)
        w3 = planes[g, r, c3] if first + 3 <= last else np.float32(0)
        if first == 0:
            for t in range(TILE):
                sums[t] = w0 * tile[0, t] + w1 * tile[c1, t] + w2 * tile[c2, t] + w3 * tile[c3, t] - offset
        else:
            for t in range(TILE):
                sums[t] += w0 * tile[first, t] + w1 * tile[c1, t] + w2 * tile[c2, t] + w3 * tile[c3, t]
    if r == 0:
        for t in range(TILE):
            bounds[t] += sums[t]
    else:
        for t in range(TILE):
            bounds[t] += abs(sums[t])

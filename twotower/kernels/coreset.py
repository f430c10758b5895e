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
SAFETY = 16  # random directions beside past queries, answered from a sample
MOST = 2**17  # directions
NEAR, NEARBY = 0.3, 64  # how far from a unit past query directions near it lie, and how many they are at most
MANY = -2
NO_ROOM, NOT_NOW = -1.0, -2.0
WIDE = 640  # so many candidates a feature make cones worth their boxes
GROUPS = 16  # cones at most
# Whatever its frequency p, a kind of query that n directions lack adds p (1 - p)^n ρ ≤ ρ / (e n) to the expected
# regret, if others' winners regret ρ there: at most this over n for ρ up to 0.68.
# Without past queries directions cost nothing to have, and more is asked: a kind with p ρ > RARE / n, the most that
# is overlooked, escapes n directions with a probability of at most e^(-BLIND / ρ).
RARE, BLIND = 0.25, 1.0
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
def draw(past, order, key, directions, begin, end):
    """Fill directions begin … end - 1 of (n, d): unit past queries without replacement, then near ones, or Gaussian.

    Zeros stay. The past query of direction k is order[k]; direction k past them all is near direction k modulo them.
    """
    known, spread = past.shape[0], NEAR / np.sqrt(directions.shape[1])
    for k in range(begin, end):
        direction = directions[k]
        if k >= known:
            gaussian(key, k, direction)
            for c in range(direction.size if known > 0 else 0):
                direction[c] = directions[k % known, c] + spread * direction[c]
            continue
        other = k + np.int64(subkey(key, k) % uint64(known - k))
        order[k], order[other] = order[other], order[k]
        query, largest, square = past[order[k]], 0.0, 0.0
        for c in range(query.size):
            largest = max(largest, abs(query[c]))
        for c in range(query.size):
            square += (query[c] / largest) ** 2 if largest > 0 else 0.0
        for c in range(query.size):
            direction[c] = query[c] / largest / np.sqrt(square) if largest > 0 else 0.0


@njit(cache=True)
def grow(latents, past, key, wanted, most, seconds):
    """Members, directions asked, their mean regret, what it may be off, and whether the wanted regret was reached.

    seconds holds what is spent anyhow, a direction's pass over all candidates, all queries to an index of 0 members
    and to a member more, and what growing may come to in all.
    """
    count, size = latents.shape
    sample = latents[:: stride(count)].copy()
    order = np.arange(past.shape[0])
    known = order.size if order.size > 0 else MOST
    limit = min(NEARBY * known, MOST, most)
    if RARE > wanted * known:  # too few to tell
        limit = min(known, limit)
    directions, best, places = np.empty((0, size), np.float32), np.empty(0, np.float32), np.empty(0, np.int64)
    asked, regret, off, rate, spent = 0, np.inf, np.inf, 0.8, seconds[0]
    members = np.zeros(0, np.int64)
    n, rare = FIRST, RARE if order.size > 0 else BLIND
    while rare > wanted * n:
        n *= 2
    while limit > 0:
        n = min(n, limit if asked >= known else min(known, limit))
        if best.size < n:
            directions = np.concatenate((directions, np.empty((n - best.size, size), np.float32)))
            places = np.concatenate((places, np.empty(n - best.size, np.int64)))
            best = np.concatenate((best, np.empty(n - best.size, np.float32)))
        draw(past, order, key, directions, asked, n)
        room = seconds[4] - spent - seconds[2] - seconds[3] * members.size
        cost = ask(latents, sample, directions[asked:n], best[asked:n], places[asked:n], room, seconds, asked == 0)
        if cost == NOT_NOW:  # so that a few directions tell first whether many will do
            n = FIRST
            cost = ask(latents, sample, directions[:n], best[:n], places[:n], room, seconds, False)
        if cost < 0:
            break
        spent, batch, members = spent + cost, n - asked, np.unique(places[:n])
        earlier = regret
        regret, error = leave_one_out(latents, directions[:known], best[:known], places[:n], mean_row(sample), members)
        off, asked = error + rare / min(n, known), n
        if regret + off <= wanted:
            safe = with_safety(members, sample, stride(count), key) if order.size > 0 else members
            return safe, asked, regret, off, True
        if 0 < regret < earlier < np.inf:
            rate = min(max(np.log2(earlier / regret), 0.75), 2.0)
        times = max(((regret + error) / wanted) ** (1 / rate), rare / (wanted * n), 1.0)
        needed = spent + cost / batch * n * (times - 1) + seconds[2] + seconds[3] * members.size * times**0.6
        if n == limit or needed > seconds[4] or 2 * members.size > count:
            break
        n *= 2
    return members, asked, regret, off, False


@njit(cache=True)
def stride(count):
    """Every how many candidates one belongs to the sample."""
    return max(count // min(max(count // 32, 256), 4096), 1)


@njit(cache=True)
def mean_row(rows):
    """The mean of rows (n, d), in float64."""
    mean = np.zeros(rows.shape[1])
    for i in range(rows.shape[0]):
        for c in range(mean.size):
            mean[c] += rows[i, c]
    return mean / rows.shape[0]


@njit(cache=True)
def with_safety(members, sample, step, key):
    """The members, and the winners of some random directions among a sample of every so many candidates."""
    directions = np.empty((SAFETY, sample.shape[1]), np.float32)
    best, places = np.empty(directions.shape[0], np.float32), np.empty(directions.shape[0], np.int64)
    for k in range(directions.shape[0]):
        gaussian(key, -1 - k, directions[k])
    winners(directions, sample, best, places)
    return np.unique(np.concatenate((members, places * step)))


@njit(cache=True)
def leave_one_out(latents, directions, best, places, mean, members):
    """The mean regret of directions (k, d) among the winners of all but themselves, and what it may be off.

    places (n,) holds all winners' numbers; direction i ≥ k is near direction i modulo k, and its winner
    does not count for that either.
    """
    known = min(directions.shape[0], places.size)
    owners = np.full(members.size, -1)
    mine = np.searchsorted(members, places)
    for i in range(mine.size):
        owner = owners[mine[i]]
        owners[mine[i]] = i % known if owner == -1 or owner == i % known else MANY
    rows = np.empty((members.size, latents.shape[1]), np.float32)
    for m in range(members.size):
        rows[m] = latents[members[m]]
    total = squares = 0.0
    for k in range(known):
        if owners[mine[k]] == MANY:
            continue
        second, middle = -np.inf, product(mean, directions[k])
        for m in range(members.size):
            if owners[m] != k:
                second = max(second, product(rows[m], directions[k]))
        if best[k] > middle:
            regret = min(max((best[k] - second) / (best[k] - middle), 0.0), 1.0)
            total += regret
            squares += regret * regret
    regret = total / known
    return regret, SURE * np.sqrt(max(squares / known - regret * regret, 0.0) / known)


@njit(cache=True)
def ask(latents, sample, directions, best, places, room, seconds, first):
    """The winners of directions among all candidates; returns the seconds it took by forecast.

    It does nothing without room for that, and does not begin with many directions that take a pass each.
    """
    count, size = latents.shape
    cost = seconds[1] * directions.shape[0]
    if count > WIDE * size:
        planes, offsets = np.empty((GROUPS, size, size), np.float32), np.empty((GROUPS, size), np.float32)
        ranks = np.zeros(GROUPS, np.int64)
        winners(directions, sample, best, places)
        if wrap(sample, directions, places, planes, offsets, ranks):
            left = rule_out(sample, planes, offsets, ranks).size / sample.shape[0]
            cheap = seconds[1] * (1.5 * ranks.sum() + 8 + left * directions.shape[0])
            if cheap < 0.8 * cost:
                if cheap > room:
                    return NO_ROOM
                alive = rule_out(latents, planes, offsets, ranks)
                rows = np.empty((alive.size, size), np.float32)
                for i in range(alive.size):
                    rows[i] = latents[alive[i]]
                winners(directions, rows, best, places)
                for k in range(places.size):
                    places[k] = alive[places[k]]
                return cheap
    if first and directions.shape[0] > FIRST and cost > seconds[0]:
        return NOT_NOW
    if cost > room:
        return NO_ROOM
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

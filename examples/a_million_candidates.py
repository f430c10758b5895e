"""Search a million candidates: a box tree gives brute force's answer without looking at most of them."""

import time

import numpy as np

import twotower as tt

CANDIDATES = 1_000_000
QUERIES = 1_000

# Latents as a ReLU tower makes them, of candidate actions in a box.
random = np.random.default_rng(0)
actions = random.uniform(-1, 1, (CANDIDATES, 4))
latents = np.maximum(actions @ random.normal(size=(4, 16)), 0) @ random.normal(size=(16, 6))  # (N, d)
queries = random.normal(size=(QUERIES, 6))


def timed(name, index):
    """Ask all queries, one after the other, and say how long one took."""
    index.query_batch(queries[:2])  # the first call compiles
    started = time.perf_counter()
    found = index.query_batch(queries)
    print(f"{name}: {1e6 * (time.perf_counter() - started) / len(queries):.1f} µs a query")
    return found


everything = timed("brute force", tt.search.BruteForce().build(latents))
started = time.perf_counter()
tree = tt.search.BoxTree().build(latents)
print(f"the tree took {time.perf_counter() - started:.2f} s to build (and to compile, the first time)")
assert np.array_equal(timed("box tree", tree), everything)

rough = tt.search.BoxTree(regret=0.01).build(latents)  # at most one percent worse than the best, at every query
timed("box tree, regret up to 0.01", rough)
print(f"measured regret: {rough.regrets(queries[:100]).max():.4f} at worst")

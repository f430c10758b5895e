"""Serve a trained policy by hashing: kept candidates are hashed once, and a choice scores those of a few buckets."""

import twotower as tt

ITERATIONS = 30
CANDIDATES = 16384

run = tt.train(
    "hopper",
    iterations=ITERATIONS,
    policy={"action_hidden": [8], "latent": 6},
    candidates={"count": CANDIDATES, "refresh": "rollout"},
)

for search, options in (("brute_force", {}), ("srp", {"bits": 6}), ("srp_paper", {"bits": 6}), ("coreset", {})):
    policy = tt.load(run.folder, search=search, audit=0.1, **options)  # audit: compare a choice in ten with the best
    evaluation, audit = policy.evaluate_and_audit(episodes=5)
    print(f"{search:11}  mean return {evaluation.mean:7.1f}")
    if audit is not None:  # a search that is not exact
        print(f"{'':11}  regret {audit.regret:.3f}, at worst {audit.worst_regret:.2f}; {audit.visited:,.0f} scored")

"""Serve a trained policy by hashing: index its candidates once, then look actions up instead of scoring them all."""

import numpy as np

import twotower as tt

ITERATIONS = 40
CANDIDATES = 16384

# Candidates that are kept can be indexed; hidden units make the score more than a plane over the actions.
run = tt.train(
    "hopper",
    iterations=ITERATIONS,
    policy={"action_hidden": [8], "latent": 6},
    candidates={"count": CANDIDATES, "refresh": "fixed"},
)
config, spec = run.config, run.policy.file.spec
towers = tt.policies.make_policy(config.policy, config.candidates, spec.observation_size, spec.actions)
theta = run.policy.theta

actions = towers.encoded_set(0)  # (N, a)
latents = towers.action_latents(theta, actions)  # (N, d)
index = tt.search.SignedRandomProjections(bits=6).build(latents, seed=0)

observations = np.random.default_rng(0).normal(size=(1000, spec.observation_size))
queries = towers.state_latents(theta, observations)  # (1000, d)
print("the first action:", actions[index.query(queries[0])])
regrets = index.regrets(queries)  # 0: the best of all candidates; 1: no better than their mean
print(f"regret of hashing: {regrets.mean():.3f} on average, {regrets.max():.3f} at worst")

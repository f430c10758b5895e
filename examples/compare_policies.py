"""Compare the three kinds of policy on one task: the same budget, the same seeds."""

import numpy as np

import twotower as tt

ITERATIONS = 60
SEEDS = 3

for kind in ("itt", "iot", "explicit"):
    runs = [
        tt.train("mountaincarcontinuous", seed=seed, iterations=ITERATIONS, policy={"kind": kind}, progress=False)
        for seed in range(SEEDS)
    ]
    means = [run.policy.file.evaluation.mean for run in runs]
    size = runs[0].policy.theta.size
    print(f"{kind:8}  {size:2} parameters  mean return {np.mean(means):6.1f}, by seed: {np.round(means, 1)}")

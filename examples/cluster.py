"""Train on every core of a Ray cluster, or on a Ray of this machine's own: the result has the same bits."""

import numpy as np

import twotower as tt

ITERATIONS = 20

runs = {
    executor: tt.train("swimmer", seed=0, iterations=ITERATIONS, executor=executor, progress=False)
    for executor in ("processes", "ray")
}
for executor, run in runs.items():
    print(f"{executor:9}  evaluation {run.policy.file.evaluation.mean:.3f}")
assert np.array_equal(runs["processes"].policy.theta, runs["ray"].policy.theta)

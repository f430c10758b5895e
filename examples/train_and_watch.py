"""Train a two-tower policy on a task of the paper, look at its numbers, and film it."""

import twotower as tt

ITERATIONS = 100
SECONDS = 60

run = tt.train("swimmer", seed=0, iterations=ITERATIONS)
best = max(run.metrics, key=lambda row: row["return"])
print(f"best iteration: {best['iteration']}, which returned {best['return']:.1f}")

evaluation = run.policy.file.evaluation  # 20 fresh episodes, recorded in the policy file
print(f"evaluation: {evaluation.mean:.1f} ± {evaluation.std:.1f}")

film = tt.record_video(run.policy, run.folder / "video.mp4", max_seconds=SECONDS)
print(f"{film.path}: {film.steps} steps, return {film.total:.1f}")

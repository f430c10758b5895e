"""Tuning: searches options of `train` with Optuna, on seeds that nobody evaluates on."""

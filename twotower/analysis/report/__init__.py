"""One page that shows runs: self-contained HTML without scripts, fonts or a network."""

from twotower.analysis.report.page import write_report

__all__ = ["write_report"]

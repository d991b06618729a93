"""Views of a result: the one-file page, and what terminals and notebooks show."""

from __future__ import annotations

from jigsaw_crl.report.writing import render_report, write_report

__all__ = ["render_report", "write_report"]

"""Logs, redaction, metrics, statistics, the chart."""

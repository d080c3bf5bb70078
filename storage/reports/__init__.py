"""Reads for the operator: dashboards, statistics, evaluation runs."""

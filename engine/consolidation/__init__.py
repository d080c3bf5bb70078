"""Consolidation at night or on demand: rebuilds, better answers, drift audits."""

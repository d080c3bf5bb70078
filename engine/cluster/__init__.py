"""Engines among others: a person has one at a time that teaches them, and gateways find it."""

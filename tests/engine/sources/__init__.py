"""Tests of `engine.sources`."""

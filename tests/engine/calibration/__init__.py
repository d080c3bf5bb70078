"""Tests of `engine.calibration`."""

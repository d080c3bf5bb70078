"""Measures how fast a running heed learns and answers, over HTTP."""

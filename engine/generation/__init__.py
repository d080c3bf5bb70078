"""Answers: streaming one, scoring or adopting one that was written elsewhere."""

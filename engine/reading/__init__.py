"""Reading: what a person meant by a reaction to an answer."""

"""The samples that an update trains on: rollouts, lessons, notes, facts, regression answers."""

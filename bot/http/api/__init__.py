"""heed's own HTTP calls: feedback, notes, adapters, people, health."""

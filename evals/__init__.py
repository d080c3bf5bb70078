"""Measures what a running heed learns, keeps and forgets, over HTTP and in the pocket model's world."""

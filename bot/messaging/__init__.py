"""The way of a chat update: inbox, dispatcher, feedback, outbox, live view, limits."""

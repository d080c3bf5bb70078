"""Telegram through python-telegram-bot. Imports the contract and nothing else of the core."""

"""Discord through discord.py. Imports the contract and nothing else of the core."""

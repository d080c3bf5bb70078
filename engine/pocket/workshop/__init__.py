"""The pocket model's workshop: small folders of text files, tasks in them, and wishes about how they are done.

What an agent's tools answer is written here as the tools of `bot.agent` give it; a test runs both.
"""

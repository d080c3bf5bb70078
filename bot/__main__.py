"""`python -m bot` is `heed`."""

from bot.cli import main

main()

"""`python -m bot` is `heed`."""

from bot.cli.main import main

main()

"""`python -m bench`, the same as `heed bench`."""

import sys

from bench.run import main

if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

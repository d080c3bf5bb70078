"""`python -m evals`, the same as `heed eval`."""

import sys

from evals.run import main

if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

"""`python -m evals`, the same as `heed eval`; `python -m evals gates` measures the gates."""

import sys

from evals.run import main

if __name__ == "__main__":
    words = sys.argv[1:]
    if words[:1] == ["gates"]:
        from evals import gates  # loads the model's libraries

        raise SystemExit(gates.main(words[1:]))
    raise SystemExit(main(words))

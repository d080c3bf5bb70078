"""heed with engines that take leases and do not carry their tokens: the control of the faults of machines.

`python -m tests.crash.unfenced run --role engine ...` is `heed run --role engine ...` but for that: an engine that
slept past its lease goes on with what it was doing.
"""

from bot.cli.main import main
from engine.cluster import ray_engines
from engine.cluster.engine_process import EngineProcess
from storage.database import Database
from storage.fencing import Tokens


class UnfencedEngineProcess(EngineProcess):
    """An engine whose writes nothing refuses."""

    async def _entered(self, tokens: Tokens) -> Database:
        database = await super()._entered(tokens)
        database._writer._info.clear()
        return database


if __name__ == "__main__":
    ray_engines.EngineProcess = UnfencedEngineProcess  # type: ignore[attr-defined]
    main()

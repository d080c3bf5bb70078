"""Processes of a cluster that are killed, paused past their leases or cut off: nobody is ever taught twice at once.

The controls, one without fencing and one that answers from memory, must break that.
"""

import random
from multiprocessing.context import ForkServerContext

import pytest

from tests.storage import cluster_worker, disturbed_cluster
from tests.storage.disturbed_cluster import PEOPLE, DisturbedCluster
from tests.storage.postgres_server import PostgresServer

pytestmark = pytest.mark.crash
NUM_FAULTS = 24
TRIES = 10  # of a control


@pytest.fixture(scope="module")
def processes() -> ForkServerContext:
    """Starts members in milliseconds."""
    return disturbed_cluster.starting()


def test_a_person_has_one_trainer_whatever_happens(
    processes: ForkServerContext, postgres: PostgresServer, name: str
) -> None:
    """Kills, pauses past the lease, lost connections, a slow store: one chain each, nothing acknowledged lost."""
    cluster = DisturbedCluster(processes, postgres, name, cluster_worker.teach)
    rng = random.Random(7)
    for _ in range(NUM_FAULTS):
        cluster.disturb(rng)
    cluster.stop()
    found = cluster.found()
    assert found.is_right, found
    assert len({user_id for user_id, _ in cluster.accepted}) == len(PEOPLE)


def test_without_fencing_it_would_be_found(processes: ForkServerContext, postgres: PostgresServer, name: str) -> None:
    """The control: leases alone let a process that slept accept what it made from an old version."""
    cluster = DisturbedCluster(processes, postgres, name, cluster_worker.teach_unfenced)
    rng = random.Random(7)
    for _ in range(TRIES):
        for _ in range(NUM_FAULTS // 2):
            cluster.disturb(rng)
        if cluster.found().forks:
            break
    cluster.stop()
    assert cluster.found().forks


def test_a_member_that_answers_from_memory_would_be_found(
    processes: ForkServerContext, postgres: PostgresServer, name: str
) -> None:
    """The other control: it shows a version that is older than one which was acknowledged."""
    cluster = DisturbedCluster(processes, postgres, name, cluster_worker.teach_from_memory)
    rng = random.Random(7)
    for _ in range(NUM_FAULTS // 2):
        cluster.disturb(rng)
    cluster.stop()
    assert cluster.found().stale

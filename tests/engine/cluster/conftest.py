"""Ray reads its settings when it is imported, and test modules import it before a cluster does."""

import os

from engine.cluster.cluster import RAY_SETTINGS

os.environ |= RAY_SETTINGS

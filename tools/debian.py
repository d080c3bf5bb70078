"""Installs Debian packages where that is possible without asking: as root, with apt-get.

Never calls sudo. Anyone who calls this has a line ready for the machines where it returns False.
"""

import os
import shutil
import subprocess


def install(package: str) -> bool:
    """Install one package; False where this is not root, there is no apt-get, or apt-get fails. Blocking: minutes."""
    apt_get = shutil.which("apt-get")
    if apt_get is None or os.geteuid() != 0:
        return False
    print(f"heed: installing the Debian package {package}", flush=True)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for arguments in (["update"], ["install", "--yes", "--no-install-recommends", package]):
        done = subprocess.run([apt_get, "-qq", *arguments], env=environment, stdout=subprocess.DEVNULL, check=False)
        if done.returncode != 0:
            return False
    return True

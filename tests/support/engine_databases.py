"""A PostgreSQL server of the tests' own: an ordinary user's, on the loopback address, in a folder
that goes when the tests are over.
"""

import os
import shutil
import socket
import subprocess
import tempfile
from contextlib import contextmanager
from functools import partial
from pathlib import Path

_USER = "caldist"


def postgres_programs():
    """Return the folder of PostgreSQL's programs, or None where it is not installed."""
    found = shutil.which("initdb")
    folders = [Path(found).parent] if found else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((folder for folder in folders if (folder / "postgres").exists()), None)


@contextmanager
def postgres_server(programs):
    """Start a server and yield what a client needs to connect."""
    # PostgreSQL refuses to run as root: its package has a user of its own.
    user = {"user": "postgres"} if os.geteuid() == 0 else {}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        if user:
            shutil.chown(folder, **user)
        data = Path(folder, "data")
        run = partial(subprocess.run, check=True, cwd=folder, stdout=subprocess.DEVNULL, **user)
        run([programs / "initdb", "-D", data, "-U", _USER, "-A", "trust", "-E", "UTF8", "-N"])
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        settings = f"-c listen_addresses=127.0.0.1 -p {port} -k {folder} -F"
        control = [programs / "pg_ctl", "-D", data, "-w", "-s"]
        run([*control, "-l", Path(folder, "log"), "-o", settings, "start"])
        try:
            yield {"host": "127.0.0.1", "port": port, "user": _USER, "database": "postgres"}
        finally:
            run([*control, "-m", "immediate", "stop"])

"""A PostgreSQL server for the tests, run from the system's binaries."""

import os
import pwd
import shutil
import subprocess
import tempfile
from itertools import count
from pathlib import Path

import psycopg

NAMES = ("postgres", "nobody")  # a server does not run as root


def find_binaries():
    """Return the folder of initdb and pg_ctl, None if they are not installed."""
    path = shutil.which("pg_ctl")
    folders = [Path(path).resolve().parent] if path else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((folder for folder in folders if (folder / "initdb").exists()), None)


class Server:
    """A server that listens on a socket in its own folder."""

    def __init__(self, binaries):
        self.binaries, self.numbers = binaries, count()
        self.folder = tempfile.mkdtemp(prefix="polytopic-pg-")
        self.as_user = {}
        if os.geteuid() == 0:
            known = {user.pw_name: user for user in pwd.getpwall()}
            user = next(known[name] for name in NAMES if name in known)
            self.as_user = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
            os.chown(self.folder, user.pw_uid, user.pw_gid)
        Path(self.folder).chmod(0o755)
        self._run("initdb", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync")

    def start(self):
        """Start the server, and return when it accepts connections."""
        # A killed process loses nothing that the system holds, so fsync would only cost time.
        options = f"-k {self.folder} -c listen_addresses= -c fsync=off"
        log = f"{self.folder}/log"
        self._run("pg_ctl", "start", "-w", "-l", log, "-o", options)
        return self

    def stop(self, mode="fast"):
        """Stop the server; "immediate" stops it at once, like a crash."""
        self._run("pg_ctl", "stop", "-w", "-m", mode)

    def remove(self):
        """Stop the server, and delete its files."""
        self.stop("immediate")
        shutil.rmtree(self.folder)

    def new_url(self):
        """Return the URL of a new, empty schema: a database would take 150 ms and 7 MB."""
        name = f"test_{next(self.numbers)}"
        address = f"host={self.folder} user=postgres dbname=postgres"
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}")
        options = f"host={self.folder}&options=-csearch_path%3D{name}"
        return f"postgresql+psycopg://postgres@/postgres?{options}"

    def _run(self, name, *arguments):
        command = [self.binaries / name, "-D", f"{self.folder}/data", *arguments]
        done = subprocess.run(
            command,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
            **self.as_user,
        )
        assert done.returncode == 0, done.stderr

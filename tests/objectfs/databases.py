"""Metadata databases for tests: the real servers of Debian's packages, on free ports of the loopback."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from tools import free_port, wait_until

ENGINES = ("sqlite", "redis", "postgres", "etcd")


class Database:
    """A server that can be killed and started again on its data; `fresh` gives the URL of an empty database."""

    def __init__(self, kind: str, folder: Path, fsync: str = "off") -> None:
        self.kind, self.folder, self.port, self.fsync = kind, folder, free_port(), fsync
        self.process: subprocess.Popen[bytes] | None = None
        self._count = 0

    def fresh(self) -> str:
        self._count += 1
        if self.kind == "sqlite":
            return f"sqlite://{self.folder}/meta-{self._count}.db"
        if self.kind == "redis":
            return f"redis://127.0.0.1:{self.port}/{self._count}"
        if self.kind == "etcd":
            return f"etcd://127.0.0.1:{self.port}/volume-{self._count}"
        name = f"volume{self._count}"
        self._postgres("psql", "-h", "127.0.0.1", "-p", str(self.port), "-c", f"CREATE DATABASE {name}", "postgres")
        return f"postgres://postgres:secret@127.0.0.1:{self.port}/{name}"

    def start(self) -> None:
        if self.kind == "sqlite":
            return
        words: list[str] = []
        if self.kind == "redis":
            words = ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder)]
            words += ["--appendonly", "yes", "--save", "", "--databases", "100"]
        elif self.kind == "etcd":
            url = f"http://127.0.0.1:{self.port}"
            peer = f"http://127.0.0.1:{free_port()}"
            words = ["etcd", "--data-dir", f"{self.folder}/etcd", "--listen-client-urls", url, "--log-level", "error"]
            words += ["--advertise-client-urls", url, "--listen-peer-urls", peer]
            words += ["--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}"]
            words += ["--unsafe-no-fsync"]
        else:
            words = self._start_postgres()
        with (self.folder / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                words, stdout=log, stderr=log, preexec_fn=self._become_postgres if self.kind == "postgres" else None
            )
        wait_until(self._answers, f"{self.kind} answers")

    def kill(self) -> None:
        """As a power failure does: PostgreSQL's own processes die together with their parent."""
        if self.process is not None:
            children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
            for number in (self.process.pid, *map(int, children)):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(number, signal.SIGKILL)
            self.process.wait()
            self.process = None

    def stop(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGQUIT if self.kind == "postgres" else signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.process = None

    def _answers(self) -> bool:
        if self.kind == "postgres":
            return self._postgres("pg_isready", "-h", "127.0.0.1", "-p", str(self.port), check=False) == 0
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1) as made:
            if self.kind == "redis":
                made.sendall(b"PING\r\n")
                return made.recv(100).startswith(b"+PONG")
            return subprocess.run(
                ["etcdctl", "--endpoints", f"127.0.0.1:{self.port}", "endpoint", "health"],
                env={**os.environ, "ETCDCTL_API": "3"}, capture_output=True,
            ).returncode == 0 if shutil.which("etcdctl") else True  # fmt: skip
        return False

    def _start_postgres(self) -> list[str]:
        data = self.folder / "postgres"
        if not data.exists():
            shutil.chown(self.folder, "postgres")
            secret = self.folder / "secret"
            secret.write_text("secret")
            self._postgres("initdb", "-D", str(data), "-A", "scram-sha-256", f"--pwfile={secret}", "-N")
        (data / "postmaster.pid").unlink(missing_ok=True)
        settings = {"port": self.port, "listen_addresses": "127.0.0.1", "unix_socket_directories": ""}
        settings["fsync"] = self.fsync
        return [_program("postgres"), "-D", str(data), *(f"--{name}={value}" for name, value in settings.items())]

    def _become_postgres(self) -> None:
        if os.geteuid() == 0:
            user = pwd.getpwnam("postgres")
            os.setgid(user.pw_gid)
            os.setuid(user.pw_uid)

    def _postgres(self, program: str, *words: str, check: bool = True) -> int:
        environment = {**os.environ, "PGPASSWORD": "secret", "PGUSER": "postgres"}
        done = subprocess.run(
            [_program(program), *words], preexec_fn=self._become_postgres, env=environment, cwd="/", capture_output=True
        )
        assert done.returncode == 0 or not check, done.stderr
        return done.returncode


def _program(name: str) -> str:
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return str(found[-1]) if found else name


@contextlib.contextmanager
def running(kind: str) -> Iterator[Database]:
    """A database that is started, and gone with its data afterwards."""
    folder = Path(tempfile.mkdtemp(prefix=f"objectfs-{kind}-"))
    folder.chmod(0o755)
    database = Database(kind, folder)
    try:
        database.start()
        yield database
    finally:
        database.stop()
        shutil.rmtree(folder, ignore_errors=True)


Fresh = Callable[[], str]

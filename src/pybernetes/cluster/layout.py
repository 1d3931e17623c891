"""Where a cluster keeps its things, and how a name leads there.

    DATA/cluster.json   what the cluster is; also the mark that the folder is ours and may be purged
    DATA/kubeconfig     the administrator's credentials, always
    DATA/pki/           keys and certificates         DATA/store/   the embedded database
    DATA/logs/          one file a process            DATA/run/     pid files; there only while processes are
    DATA/nodes/         what each node has             DATA/images/  archives every node gets

DATA is ~/.pybernetes/NAME unless `--data-dir` says otherwise; then a link in ~/.pybernetes/.elsewhere remembers it
until its data is removed, so that `pyb down --name NAME` and a later `pyb up --name NAME` find it.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

from pybernetes.cluster import files, pidfile
from pybernetes.cluster.errors import ClusterError

DEFAULT_NAME = "pybernetes"
SUPERVISOR = "supervisor"
_NAME = r"[a-z0-9]([-a-z0-9]{0,48}[a-z0-9])?"


@dataclass(frozen=True, slots=True)
class Record:
    """The content of cluster.json: enough for `status` and `down` to work without asking the cluster."""

    name: str
    server: str = ""
    store: str = ""
    user_kubeconfig: str = ""  # Where `up` merged the context into; $KUBECONFIG may differ when `down` runs.
    made_by: str = "pybernetes"
    network: int | None = None  # Which of this machine's networks its nodes have; kept, as pods have addresses of it.
    nodes: int = 0
    runtime: str = ""  # Which its nodes had when it was last ready.
    ip_family: str = ""  # Of its pods and Services (`up --ip-family`).
    network_kind: str = ""  # How its nodes reach each other's pods (`up --network`).
    differences: tuple[str, ...] = ()  # What is not isolated on its nodes, because root did not make them.
    members: dict[str, int] = field(default_factory=dict)  # Its nodes: the number of each gives it its address.
    etcd_endpoints: str = ""
    simulated_nodes: int = 0
    simulation_rules: str = ""
    load_balancer_pool: str = ""  # Where Services get addresses from, if `up` was given it.
    ingress_http_port: int = -1  # As in `settings.Settings`.
    ingress_https_port: int = -1
    verbosity: int = 2  # How much its components log (`up -v`).
    former_context: str = ""  # The current context of the user's kubeconfig before `up`; `down` restores it.

    @property
    def context(self) -> str:
        """The name of the kubeconfig's context, cluster and user."""
        return context_name(self.name)

    @property
    def numbers(self) -> dict[str, int]:
        """Its nodes by name; an older version wrote only how many they were."""
        return self.members or {f"node-{number}": number for number in range(1, self.nodes + 1)}


@dataclass(frozen=True, slots=True)
class Layout:
    """The paths of one cluster."""

    name: str
    data: Path

    @property
    def record_file(self) -> Path:
        return self.data / "cluster.json"

    @property
    def kubeconfig(self) -> Path:
        return self.data / "kubeconfig"

    @property
    def pki(self) -> Path:
        return self.data / "pki"

    @property
    def token_file(self) -> Path:
        return self.pki / "tokens.csv"

    @property
    def database(self) -> Path:
        return self.data / "store" / "pybernetes.db"

    @property
    def logs(self) -> Path:
        return self.data / "logs"

    @property
    def run(self) -> Path:
        return self.data / "run"

    @property
    def components_file(self) -> Path:
        return self.run / "components.json"

    @property
    def images(self) -> Path:
        return self.data / "images"

    @property
    def registries(self) -> Path:
        """Settings of image registries (`HOST/hosts.toml`), in containerd's format."""
        return self.data / "certs.d"

    def node(self, name: str) -> Path:
        return self.data / "nodes" / name

    def pid_file(self, process: str) -> Path:
        return self.run / f"{process}.pid"

    def log(self, process: str) -> Path:
        return self.logs / f"{process}.log"

    def processes(self) -> dict[str, pidfile.Process]:
        """Every process a pid file names, alive or not; the supervisor first."""
        found = {path.stem: pidfile.read(str(path)) for path in sorted(self.run.glob("*.pid"))}
        known = {name: process for name, process in found.items() if process is not None}
        return dict(sorted(known.items(), key=lambda item: item[0] != SUPERVISOR))

    def specs(self) -> list[dict[str, object]]:
        """The components that its supervisor keeps running, as the components file lists them; none if it is down."""
        try:
            loaded = json.loads(self.components_file.read_bytes())
        except (FileNotFoundError, ValueError):
            return []
        return loaded if isinstance(loaded, list) else []

    def running(self) -> bool:
        """Whether the supervisor of this cluster is alive."""
        supervisor = pidfile.read(str(self.pid_file(SUPERVISOR)))
        return supervisor is not None and supervisor.alive

    def read_record(self) -> Record | None:
        """The cluster's record, None if the folder is not (yet) ours."""
        try:
            content = json.loads(self.record_file.read_bytes())
            # A later version may know more of it.
            record = Record(**{each.name: content[each.name] for each in fields(Record) if each.name in content})
        except (OSError, ValueError, TypeError):
            return None
        return record if record.made_by == "pybernetes" else None

    def write_record(self, record: Record) -> None:
        files.write_private(self.record_file, json.dumps(asdict(record), indent=2).encode() + b"\n")

    def claim(self) -> None:
        """Makes the folder ours; refuses one with other people's things in it, because `down --purge` empties it."""
        files.make_private_folder(self.data)
        record = self.read_record()
        if record is not None and record.name != self.name:
            raise ClusterError(f"{self.data} belongs to the cluster {record.name!r}; choose another --data-dir")
        if record is None:
            # What an interrupted first start can leave behind is ours.
            foreign = [path for path in self.data.iterdir() if not path.name.startswith(("lock", ".cluster.json."))]
            if foreign:
                raise ClusterError(f"{self.data} is not empty and holds no cluster; choose another --data-dir")

    def prepare(self) -> None:
        """Makes the record and the folders of a claimed folder."""
        if self.read_record() is None:
            self.write_record(Record(self.name))
        for folder in (self.pki, self.logs, self.run, self.database.parent):
            files.make_private_folder(folder)

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Keeps two commands from changing the same cluster at once; the second waits and says so."""
        path = self.data / "lock"
        while True:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                print(f"waiting for another pyb command on cluster {self.name!r}", file=sys.stderr)
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            # A purge may have removed the file while we waited for it; then the lock is worth nothing.
            with contextlib.suppress(FileNotFoundError):
                if os.stat(path).st_ino == os.fstat(descriptor).st_ino:
                    break
            os.close(descriptor)
        try:
            yield
        finally:
            os.close(descriptor)


def context_name(name: str) -> str:
    """`pybernetes` for the default cluster, `pybernetes-NAME` for others."""
    return name if name == DEFAULT_NAME else f"{DEFAULT_NAME}-{name}"


def check_name(name: str) -> str:
    """Refuses what cannot be a folder and a context; the rule is that of a DNS label, as everywhere in Kubernetes."""
    if not re.fullmatch(_NAME, name):
        raise ClusterError(
            f"invalid cluster name {name!r}: at most 50 lower case letters, digits and '-', no '-' at either end"
        )
    return name


def home() -> Path:
    """The folder of all clusters of this user."""
    return Path.home() / ".pybernetes"


def locate(name: str, data_dir: str | None = None) -> Layout:
    """Where the cluster of this name is (or would be): --data-dir, else where it was started, else the default."""
    check_name(name)
    if data_dir is not None:
        return Layout(name, Path(os.path.abspath(os.path.expanduser(data_dir))))
    link = _elsewhere(name)
    if link.is_symlink():
        return Layout(name, Path(os.readlink(link)))
    return Layout(name, home() / name)


def clusters() -> list[Layout]:
    """All clusters of this user that have a record."""
    if not home().is_dir():
        return []
    names = {path.name for folder in (home(), home() / ".elsewhere") if folder.is_dir() for path in folder.iterdir()}
    found = [locate(name) for name in sorted(names) if re.fullmatch(_NAME, name)]
    return [each for each in found if each.read_record() is not None]


def remember(layout: Layout) -> None:
    """Makes a cluster outside of the default folder findable by its name."""
    link = _elsewhere(layout.name)
    link.unlink(missing_ok=True)
    if layout.data != home() / layout.name:
        files.make_private_folder(link.parent)
        link.symlink_to(layout.data)


def forget(layout: Layout) -> None:
    """Undoes `remember`."""
    link = _elsewhere(layout.name)
    if link.is_symlink() and Path(os.readlink(link)) == layout.data:
        link.unlink()


def _elsewhere(name: str) -> Path:
    return home() / ".elsewhere" / name

"""The skeleton of all our plugins: reading the environment and the configuration, versions, errors, results.

A plugin is a `Plugin` of plain functions; `dispatch` does what every plugin must do around them and answers what is to
be printed. `run` is the whole of an executable.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import IO, TYPE_CHECKING, Any

from . import names, results
from .errors import (
    DECODING_FAILURE,
    INCOMPATIBLE_VERSION,
    INTERNAL,
    INVALID_ENVIRONMENT,
    INVALID_NETNS,
    INVALID_NETWORK_CONFIG,
    CNIError,
    reason,
)
from .fields import field
from .versions import CURRENT, SUPPORTED, at_least

if TYPE_CHECKING:
    from .invoke import Plugins

_MODULES = {
    "bandwidth": "bandwidth",
    "bridge": "bridge",
    "dhcp": "dhcp",
    "firewall": "firewall",
    "host-local": "host_local",
    "ipvlan": "ipvlan",
    "loopback": "loopback",
    "macvlan": "macvlan",
    "noop": "noop",
    "portmap": "portmap",
    "ptp": "ptp",
    "tuning": "tuning",
    "vlan": "vlan",
}
BUILT_IN = frozenset(_MODULES)

# Which variables a command cannot do without.
_ATTACHMENT = ("CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_PATH")
_REQUIRED = {
    "ADD": _ATTACHMENT,
    "CHECK": _ATTACHMENT,
    "DEL": ("CNI_CONTAINERID", "CNI_IFNAME", "CNI_PATH"),
    "GC": ("CNI_PATH",),
    "STATUS": ("CNI_PATH",),
    "VERSION": (),
}
_CHECKS = {"CNI_CONTAINERID": names.check_container_id, "CNI_IFNAME": names.check_interface_name}
_SINCE = {"CHECK": "0.4.0", "GC": "1.1.0", "STATUS": "1.1.0"}


@dataclass(frozen=True)
class Call:
    """One call of a plugin: whom it is about, the configuration, and the way to other plugins."""

    command: str
    container_id: str
    netns: str
    ifname: str
    args: str
    config: dict[str, Any]
    environ: Mapping[str, str]
    plugins: Plugins

    @property
    def network(self) -> str:
        return str(self.config["name"])

    @property
    def version(self) -> str:
        return field(self.config, "cniVersion", "") or "0.1.0"

    @property
    def prev_result(self) -> results.Result | None:
        """The result of the plugins before this one, at CHECK and DEL of all; None if there is none."""
        previous = self.config.get("prevResult")
        if previous is None:
            return None
        if not isinstance(previous, dict):
            raise CNIError("could not parse prevResult: must be an object", DECODING_FAILURE)
        try:
            return results.read(previous, self.version)
        except CNIError as error:
            raise error.within("could not parse prevResult") from None

    @property
    def valid_attachments(self) -> set[tuple[str, str]]:
        """Container and interface of what GC must leave alone."""
        listed = field(self.config, "cni.dev/valid-attachments", [])
        if not all(isinstance(entry, dict) for entry in listed):
            raise CNIError("cni.dev/valid-attachments: must be a list of objects", DECODING_FAILURE)
        return {(field(entry, "containerID", ""), field(entry, "ifname", "")) for entry in listed}

    def delegate(self, plugin: str, command: str = "") -> results.Result | None:
        """Lets another plugin do the same (or `command`) with the same configuration; its result, if it gave one."""
        answer = self.plugins.call(plugin, {**self.environ, "CNI_COMMAND": command or self.command}, self.config)
        return None if answer is None else results.read(answer, self.version)


@dataclass(frozen=True)
class Plugin:
    """A plugin's functions. One that has nothing to check, to say of its readiness or to sweep up leaves these out."""

    name: str
    add: Callable[[Call], results.Result]
    delete: Callable[[Call], None]
    check: Callable[[Call], None] = lambda call: None
    status: Callable[[Call], None] = lambda call: None
    gc: Callable[[Call], None] = lambda call: None


def built_in(name: str) -> Plugin:
    """The plugin of ours that has this name."""
    plugin: Plugin = import_module(f"pybernetes.cni.plugins.{_MODULES[name]}").PLUGIN
    return plugin


def call_built_in(
    name: str, environ: Mapping[str, str], config: dict[str, Any], plugins: Plugins
) -> dict[str, Any] | None:
    """Runs a plugin of ours in this process."""
    if name not in BUILT_IN:
        raise CNIError(f'failed to find plugin "{name}": there is none of this name inside this program')
    return dispatch(built_in(name), environ, config, plugins)


def dispatch(
    plugin: Plugin, environ: Mapping[str, str], config: dict[str, Any], plugins: Plugins
) -> dict[str, Any] | None:
    """Does what the environment asks for and answers what the plugin prints; None if that is nothing."""
    command = _check_environ(environ)
    if command == "VERSION":
        return {"cniVersion": CURRENT, "supportedVersions": list(SUPPORTED)}
    name = field(config, "name", "")
    if not name:
        raise CNIError("missing network name", INVALID_NETWORK_CONFIG)
    names.check_network_name(name)
    version = field(config, "cniVersion", "") or "0.1.0"
    if command in _SINCE and not at_least(version, _SINCE[command]):
        raise CNIError(f"config version does not allow {command}", INCOMPATIBLE_VERSION)
    if version not in SUPPORTED:
        supported = " ".join(f'"{each}"' for each in SUPPORTED)
        details = f'config is "{version}", plugin supports [{supported}]'
        raise CNIError("incompatible CNI versions", INCOMPATIBLE_VERSION, details)
    call = Call(
        command,
        environ.get("CNI_CONTAINERID", ""),
        environ.get("CNI_NETNS", ""),
        environ.get("CNI_IFNAME", ""),
        environ.get("CNI_ARGS", ""),
        config,
        environ,
        plugins,
    )
    if command in ("ADD", "DEL") and environ.get("CNI_NETNS_OVERRIDE", "").upper() not in ("TRUE", "1"):
        _refuse_own_namespace(call.netns)
    try:
        if command == "ADD":
            return results.written(plugin.add(call), version)
        functions = {"CHECK": plugin.check, "DEL": plugin.delete, "GC": plugin.gc, "STATUS": plugin.status}
        functions[command](call)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        raise CNIError(where + reason(error), INTERNAL) from error
    return None


def run(name: str, environ: Mapping[str, str], stdin: IO[bytes], stdout: IO[str], stderr: IO[str], own: str) -> int:
    """The whole of an executable plugin; `own` is the folder it stands in: delegates found there run in the process."""
    from .invoke import Plugins, find

    path = [folder for folder in environ.get("CNI_PATH", "").split(os.pathsep) if folder]

    def ours(plugin: str) -> bool:
        return plugin in BUILT_IN and os.path.realpath(os.path.dirname(find(plugin, path))) == os.path.realpath(own)

    if not environ.get("CNI_COMMAND"):
        print(f"CNI {name} plugin of Pybernetes", file=stderr)
        print("CNI protocol versions supported: " + ", ".join(SUPPORTED), file=stderr)
        return 0
    version = CURRENT
    try:
        config = {} if environ["CNI_COMMAND"] == "VERSION" else _decoded(stdin.read())
        version = field(config, "cniVersion", "") or version
        answer = dispatch(built_in(name), environ, config, Plugins(path, ours))
    except CNIError as error:
        print(json.dumps(error.as_json(version), indent=4), file=stdout)
        return 1
    if answer is not None:
        print(json.dumps(answer, indent=4), file=stdout)
    return 0


def _decoded(data: bytes) -> dict[str, Any]:
    try:
        config = json.loads(data)
    except ValueError as error:
        raise CNIError(f"error unmarshall network config: {error}", DECODING_FAILURE) from None
    if not isinstance(config, dict):
        raise CNIError("error unmarshall network config: must be an object", DECODING_FAILURE)
    return config


def _check_environ(environ: Mapping[str, str]) -> str:
    command = environ.get("CNI_COMMAND", "")
    if command and command not in _REQUIRED:
        raise CNIError(f"unknown CNI_COMMAND: {command}", INVALID_ENVIRONMENT)
    missing = [name for name in ("CNI_COMMAND", *_REQUIRED.get(command, ())) if not environ.get(name)]
    for name, check in _CHECKS.items():
        if name in _REQUIRED.get(command, ()) and environ.get(name):
            check(environ[name])
    if missing:
        raise CNIError(f"required env variables [{','.join(missing)}] missing", INVALID_ENVIRONMENT)
    return command


def _refuse_own_namespace(netns: str) -> None:
    """Refuse the node's own namespace: a plugin would remove the node's interfaces."""
    try:
        theirs, ours = os.stat(netns), os.stat("/proc/thread-self/ns/net")
    except OSError:
        return  # a namespace that is gone is the plugin's business
    if (theirs.st_dev, theirs.st_ino) == (ours.st_dev, ours.st_ino):
        raise CNIError("plugin's netns and netns from CNI_NETNS should not be the same", INVALID_NETNS)

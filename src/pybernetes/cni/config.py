"""Network configurations: a list of plugins under one name, from files or bytes.

A folder is read as runtimes read it: `.conflist` files are lists, `.conf` and `.json` files one plugin each that is
taken for a list of one; files come in the order of their names. A list may leave plugins to files of their own, in a
folder beside it with the network's name (`loadOnlyInlinedPlugins` forbids that).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from . import fields
from .errors import DECODING_FAILURE, CNIError, NoConfigError, reason
from .versions import CURRENT, at_least, parse


@dataclass(frozen=True)
class PluginConfig:
    """The configuration of one plugin, as it was written."""

    raw: dict[str, Any]

    @property
    def type(self) -> str:
        return str(self.raw["type"])

    @property
    def name(self) -> str:
        return fields.field(self.raw, "name", "")

    @cached_property
    def capabilities(self) -> frozenset[str]:
        """The capabilities the plugin's configuration enables, such as `portMappings`."""
        wanted = fields.field(self.raw, "capabilities", {})
        return frozenset(name for name, on in wanted.items() if on is True)

    def describe(self) -> str:
        """The plugin as error messages name it."""
        return f'type="{self.type}"' + (f' name="{self.name}"' if self.name else "")

    @staticmethod
    def from_json(raw: Any) -> PluginConfig:
        """The configuration in a decoded document; it must say which plugin it is for."""
        if not isinstance(raw, dict):
            raise CNIError("error parsing configuration: must be an object", DECODING_FAILURE)
        if not fields.field(raw, "type", ""):
            raise CNIError("error parsing configuration: missing 'type'", DECODING_FAILURE)
        config = PluginConfig(raw)
        _ = config.name, config.capabilities  # of the wrong type: an error here, not when the first pod comes
        return config


@dataclass(frozen=True)
class NetworkConfigList:
    """A network: its name, the version its plugins are spoken to in, and the plugins in the order of ADD."""

    name: str
    version: str
    plugins: tuple[PluginConfig, ...]
    raw: bytes
    disable_check: bool = False
    disable_gc: bool = False
    load_only_inlined_plugins: bool = False
    capabilities: frozenset[str] = field(default=frozenset(), compare=False)


def from_bytes(data: bytes) -> NetworkConfigList:
    """A config list; one without plugins is for `from_file`, which looks for them beside it."""
    raw = _decoded(data, "error parsing configuration list")
    if "name" not in raw:
        raise _list_error("no name")
    name = raw["name"]
    if not isinstance(name, str):
        raise _list_error(f"invalid name type: {json.dumps(name)}")
    inlined = _flag(raw, "loadOnlyInlinedPlugins")
    plugins: list[PluginConfig] = []
    if "plugins" in raw:
        listed = raw["plugins"]
        if not isinstance(listed, list):
            raise _list_error(f"invalid 'plugins' type: {json.dumps(listed)}")
        if not listed:
            raise _list_error("no plugins in list")
        for index, entry in enumerate(listed):
            try:
                plugins.append(PluginConfig.from_json(entry))
            except CNIError as error:
                raise error.within(f"failed to parse plugin config {index}") from None
    elif inlined:
        raise _list_error("`loadOnlyInlinedPlugins` is true, and no 'plugins' key")
    return NetworkConfigList(
        name=name,
        version=_version(raw),
        plugins=tuple(plugins),
        raw=data,
        disable_check=_flag(raw, "disableCheck"),
        disable_gc=_flag(raw, "disableGC"),
        load_only_inlined_plugins=inlined,
        capabilities=frozenset().union(*(plugin.capabilities for plugin in plugins)),
    )


def from_file(path: Path) -> NetworkConfigList:
    """The network that a file describes: a list, or one plugin that is taken for a list of one."""
    data = _read(path)
    if path.suffix != ".conflist":
        raw = _decoded(data, "error parsing configuration")
        plugin = PluginConfig.from_json(raw)
        listed = {"name": plugin.name, "cniVersion": fields.field(raw, "cniVersion", ""), "plugins": [raw]}
        return from_bytes(json.dumps(listed).encode())
    network = from_bytes(data)
    if not network.load_only_inlined_plugins:
        beside = [
            PluginConfig.from_json(_decoded(_read(file), "error parsing configuration"))
            for file in files(path.parent / network.name, (".conf",))
        ]
        if beside:
            both = (*network.plugins, *beside)
            together = frozenset().union(*(plugin.capabilities for plugin in both))
            network = NetworkConfigList(
                network.name,
                network.version,
                both,
                network.raw,
                network.disable_check,
                network.disable_gc,
                network.load_only_inlined_plugins,
                together,
            )
    if not network.plugins:
        raise NoConfigError("no plugin configs found")
    return network


def files(folder: Path, suffixes: tuple[str, ...]) -> list[Path]:
    """The folder's files with these endings, in the order of their names; no folder has no files."""
    try:
        entries = sorted(folder.iterdir())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise CNIError(f"cannot read {folder}: {reason(error)}") from None
    return [entry for entry in entries if entry.suffix in suffixes and not entry.is_dir()]


def load(folder: Path, name: str) -> NetworkConfigList:
    """The network of this name; lists go before files with one plugin."""
    lists = files(folder, (".conflist",))
    singles = files(folder, (".conf", ".json"))
    for file in (*lists, *singles):
        network = from_file(file)
        if network.name == name:
            return network
    if not lists and not singles:
        raise NoConfigError(f"no net configurations found in {folder}")
    raise NoConfigError(f'no net configuration with name "{name}" in {folder}')


def first(folder: Path) -> NetworkConfigList:
    """The network a runtime uses for pods: the first file, in the order of names, that can be read.

    What cannot be read is passed over, as runtimes do, so that one broken file does not take the node's network away;
    if nothing else is there, the error says what was wrong with it.
    """
    problem: CNIError | None = None
    for file in files(folder, (".conf", ".conflist", ".json")):
        try:
            return from_file(file)
        except CNIError as error:
            problem = problem or error.within(str(file))
    raise problem or NoConfigError(f"no network config found in {folder}: cni plugin not initialized")


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise CNIError(f"error reading {path}: {reason(error)}") from None


def _decoded(data: bytes, context: str) -> dict[str, Any]:
    try:
        raw = json.loads(data)
    except ValueError as error:
        raise CNIError(f"{context}: {error}", DECODING_FAILURE) from None
    if not isinstance(raw, dict):
        raise CNIError(f"{context}: must be an object", DECODING_FAILURE)
    return raw


def _version(raw: dict[str, Any]) -> str:
    """The list's version: the newest of `cniVersions` and `cniVersion` that we know, else `cniVersion` as it is."""
    version = raw.get("cniVersion", "")
    if not isinstance(version, str):
        raise _list_error(f"invalid cniVersion type: {json.dumps(version)}")
    if "cniVersions" not in raw:
        return version
    listed = raw["cniVersions"]
    if not isinstance(listed, list) or not all(isinstance(entry, str) for entry in listed):
        raise _list_error(f"invalid type for cniVersions: {json.dumps(listed)}")
    candidates = [*listed, *([version] if version else [])]
    return max((entry for entry in candidates if at_least(CURRENT, entry)), key=parse, default=version)


def _flag(raw: dict[str, Any], name: str) -> bool:
    value = raw.get(name, False)
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if not isinstance(value, bool):
        raise _list_error(f"invalid value {json.dumps(value)} for {name}")
    return value


def _list_error(text: str) -> CNIError:
    return CNIError(f"error parsing configuration list: {text}", DECODING_FAILURE)

"""Encryption at rest by flags: the store of the server, wrapped if a configuration is given, and itself if not."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from pybernetes.api.resources import RESOURCES
from pybernetes.flags import boolean, file
from pybernetes.net.watched_files import Watched
from pybernetes.store.base import Store

from .health import Check
from .reloads import Reloads

if TYPE_CHECKING:
    from pybernetes.store.encryption.configuration import Rules


_ESSENTIAL_GROUPS = frozenset(
    (
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "apiregistration.k8s.io",
        "flowcontrol.apiserver.k8s.io",
        "node.k8s.io",
        "policy",
        "rbac.authorization.k8s.io",
        "scheduling.k8s.io",
        "storage.k8s.io",
    )
)
_ESSENTIAL = frozenset(
    (
        *(("", plural) for plural in ("limitranges", "namespaces", "nodes", "pods", "resourcequotas", "services")),
        *(("", plural) for plural in ("endpoints", "persistentvolumeclaims", "persistentvolumes", "serviceaccounts")),
        *(("networking.k8s.io", plural) for plural in ("ingressclasses", "ipaddresses", "servicecidrs")),
        ("discovery.k8s.io", "endpointslices"),
    )
)


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags about encryption at rest."""
    add = parser.add_argument_group("encryption at rest").add_argument
    add("--encryption-provider-config", type=file, help="an EncryptionConfiguration: what is stored how")
    add(
        "--encryption-provider-config-automatic-reload",
        type=boolean,
        nargs="?",
        const=True,
        default=False,
        help="read it again when it changes",
    )


def encrypted(store: Store, options: argparse.Namespace) -> Store:
    """The store to use. Raises ValueError or OSError for a configuration that cannot be used."""
    file = options.encryption_provider_config
    if file is None:
        if options.encryption_provider_config_automatic_reload:
            raise ValueError(
                "--encryption-provider-config-automatic-reload must be set with --encryption-provider-config"
            )
        return store
    from pybernetes.store.encryption.configuration import read
    from pybernetes.store.encryption.store import EncryptedStore, watching

    rules, reload = read(file), None
    if options.encryption_provider_config_automatic_reload:
        reload = watching(file, Watched([file]).changed, _counting(file.read_bytes(), read))
    return EncryptedStore(store, rules, resource_of, reload)


def plugins_check(store: Store, options: argparse.Namespace) -> Check | None:
    """The check `kms-providers` of /healthz and /readyz: whether all KMS plugins are healthy; None without
    encryption."""
    if options.encryption_provider_config is None:
        return None
    from pybernetes.store.encryption.store import EncryptedStore

    assert isinstance(store, EncryptedStore)
    needed = store.has_plugins or options.encryption_provider_config_automatic_reload
    return store.check_plugins if needed else None


def _counting(used: bytes, read: Callable[[Path], Rules]) -> Callable[[Path], Rules | None]:
    """Read a file of which `used` is the content now; None if it is that still."""
    reloads = Reloads("encryption", used)

    def counted(file: Path) -> Rules | None:
        nonlocal used
        try:
            data = file.read_bytes()
            if data == used:
                return None
            rules = read(file)
        except (OSError, ValueError):
            reloads.failed()
            raise
        reloads.succeeded(data)
        used = data
        return rules

    return counted


def essential_prefixes() -> frozenset[str]:
    """Where what this server decides by is kept: it does not run without all of it.

    With an unreadable policy, quota or disruption budget it would allow what is forbidden.
    """
    kept = [each for each in RESOURCES if each.stored]
    return frozenset(
        each.storage_prefix
        for each in kept
        if each.group in _ESSENTIAL_GROUPS or (each.group, each.plural) in _ESSENTIAL
    )


def resource_of(key: str) -> tuple[str, str] | None:
    """The group and plural of the resource whose object is kept at a key; None for what is no resource."""
    last = key.rfind("/")
    table = _table()
    found = table.get(key[: key.rfind("/", 0, last) + 1]) or table.get(key[: last + 1])
    if found is not None:
        return found
    parts = key.split("/")  # "", registry, group, plural, [namespace,] name: a kind that users defined
    return (parts[2], parts[3]) if len(parts) in (5, 6) and "." in parts[2] else None


@cache
def _table() -> dict[str, tuple[str, str]]:
    table: dict[str, tuple[str, str]] = {}
    for resource in RESOURCES:
        if resource.stored:
            table.setdefault(resource.storage_prefix, (resource.group, resource.plural))
    return table | {"/registry/events/": ("", "events")}

"""`--encryption-provider-config`: an EncryptionConfiguration, which resources are written how.

    apiVersion: apiserver.config.k8s.io/v1
    kind: EncryptionConfiguration
    resources:
    - resources: [secrets, configmaps, "*.apps"]
      providers:                      # the first writes, all read
      - aesgcm: {keys: [{name: key2, secret: ...}, {name: key1, secret: ...}]}
      - identity: {}

An exact name counts before `*.GROUP` (`*.` is core's), and that before `*.*`, so nothing may come after what it would
be masked by. The providers of a resource are those of all parts that name it, in order. KMS plugins speak v2; v1, which
upstream has switched off, is refused.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from pathlib import Path as File
from typing import Any
from urllib.parse import urlsplit

from pybernetes.api import configfile
from pybernetes.api.field import FieldError, Path, aggregate, invalid, required
from pybernetes.api.times import parse_duration
from pybernetes.api.types import Duration, Int32

from .kms import KMS
from .providers import AESCBC, AESGCM, Identity, Provider, Secretbox

_SCHEME = configfile.Scheme(
    {("apiserver.config.k8s.io/v1", "EncryptionConfiguration"), ("v1", "EncryptionConfig")},
    "k8s.io/apiserver/pkg/server/options/encryptionconfig/config.go:142",
)
_KINDS: dict[str, tuple[Any, tuple[int, ...]]] = {
    "aesgcm": (AESGCM, (16, 24, 32)),
    "aescbc": (AESCBC, (16, 24, 32)),
    "secretbox": (Secretbox, (32,)),
}
_GO_NAMES = ("AESGCM", "AESCBC", "Secretbox", "Identity", "KMS")
_NOT_RESOURCES = ("apiserveripinfo", "serviceipallocations", "servicenodeportallocations")
_EVENTS = (
    "'*.events.k8s.io' objects are stored using the 'events' API group in etcd. Use 'events' instead in the config file"
)


class Key(configfile.Section):
    """A key by its name; `secret` is base64."""

    name: str = ""
    secret: str = ""


class AESConfiguration(configfile.Section):
    """The keys of a provider; the first one writes."""

    keys: list[Key] = []


class SecretboxConfiguration(AESConfiguration):
    """The same."""


class IdentityConfiguration(configfile.Section):
    """Nothing to say."""


class KMSConfiguration(configfile.Section):
    """A plugin behind a Unix socket."""

    apiVersion: str = "v1"
    name: str = ""
    endpoint: str = ""
    timeout: Duration = "3s"
    cachesize: Int32 | None = None


class ProviderConfiguration(configfile.Section):
    """Exactly one of these."""

    aesgcm: AESConfiguration | None = None
    aescbc: AESConfiguration | None = None
    secretbox: SecretboxConfiguration | None = None
    identity: IdentityConfiguration | None = None
    kms: KMSConfiguration | None = None


class ResourceConfiguration(configfile.Section):
    """Some resources, and who writes and reads them."""

    resources: list[str] = []
    providers: list[ProviderConfiguration] = []


class EncryptionConfiguration(configfile.Section):
    apiVersion: str = ""
    kind: str = ""
    resources: list[ResourceConfiguration] = []


_Name = tuple[str, str]
"""Plural and group; `*` is any."""


def _parsed(resource: str) -> _Name:
    plural, _, group = resource.partition(".")
    return plural, group


def _shown(name: _Name) -> str:
    return "*." if name == ("*", "") else ".".join(name).removesuffix(".")


class Rules:
    """Which providers are for a resource."""

    def __init__(self, parts: Sequence[ResourceConfiguration]) -> None:
        """Of parts that are known to be good. Raises ValueError for a resource that an earlier part masks."""
        self._providers: dict[_Name, tuple[Provider, ...]] = {}
        self.plugins: list[KMS] = []
        """Where keys are kept that are not in the file."""
        for part in parts:
            made = tuple(provider for each in part.providers for provider in _made(each))
            self.plugins += [each for each in made if isinstance(each, KMS)]
            for resource in part.resources:
                name = _parsed(resource)
                for earlier in (("*", name[1]), ("*", "*")):
                    if earlier in self._providers:
                        raise ValueError(f'resource "{_shown(name)}" is masked by earlier rule "{_shown(earlier)}"')
                self._providers[name] = (*self._providers.get(name, ()), *made)

    async def close(self) -> None:
        """Hang up where keys are kept."""
        for each in self.plugins:
            await each.close()

    def providers(self, group: str, plural: str) -> tuple[Provider, ...] | None:
        """The providers that write (the first) and read (all) a resource; None without a rule."""
        for name in ((plural, group), ("*", group), ("*", "*")):
            if name in self._providers:
                return self._providers[name]
        return None


def read(file: File) -> Rules:
    """The rules in a file. Raises ValueError or OSError; no message holds a secret."""
    data = file.read_bytes()
    if not data:
        why = f'error while loading file: encryption provider configuration file "{file}" is empty'
        raise ValueError(f"error while parsing file: {why}")
    try:
        found = configfile.load(data, EncryptionConfiguration, _SCHEME)
    except configfile.ConfigError as error:
        words = str(error).replace(data.decode("utf-8", "replace"), "...")
        why = f'error decoding encryption provider configuration file "{file}": {words}'
        raise ValueError(f"error while parsing file: {why}") from None
    errors = validate(found.resources)
    if errors:
        raise ValueError(f"error while parsing file: {aggregate(errors)}")
    try:
        if any(each.kms and each.kms.apiVersion != "v2" for part in found.resources for each in part.providers):
            raise ValueError("KMSv1 is deprecated. Use KMSv2 instead.")
        return Rules(found.resources)
    except ValueError as error:
        raise ValueError(f"error while building transformers: {error}") from None


def validate(parts: Sequence[ResourceConfiguration]) -> list[FieldError]:
    """Everything that is wrong, in upstream's words."""
    root = Path("resources")
    if not parts:
        return [required(root, f"at least one {root} is required")]
    errors: list[FieldError] = []
    plugins: set[str] = set()
    for number, part in enumerate(parts):
        resources, providers = root.index(number).child("resources"), root.index(number).child("providers")
        if not part.resources:
            errors.append(required(resources, f"at least one {resources} is required"))
        errors += _overlaps(part.resources, resources)
        for each, name in enumerate(part.resources):
            problem = _name_problem(name)
            if problem:
                errors.append(invalid(resources.index(each), name, problem))
        if not part.providers:
            errors.append(required(providers, f"at least one {providers} is required"))
        for each, provider in enumerate(part.providers):
            errors += _provider(provider, providers.index(each), plugins)
    return errors


def _overlaps(names: list[str], path: Path) -> list[FieldError]:
    errors = []
    if len(set(names)) < len(names):
        errors.append(invalid(path, names, "the same resource cannot be specified multiple times"))
    different = set(names)
    masked = "*.*" in different and len(different) > 1
    masked = masked or any(
        one != other and one.partition(".")[0] == "*" and one.partition(".")[2] == other.partition(".")[2]
        for one in different
        for other in different
    )
    if masked:
        detail = "using overlapping resources such as 'secrets' and '*.' in the same resource list is not allowed"
        errors.append(invalid(path, names, f"{detail} as they will be masked"))
    return errors


def _name_problem(name: str) -> str:
    resource, _, group = name.partition(".")
    if name != name.lower():
        return "resource name should not contain capital letters"
    if name == "*":
        return "use '*.' to encrypt all the resources from core API group or *.* to encrypt all resources"
    if name in _NOT_RESOURCES:
        return "resources which do not have REST API/s cannot be encrypted"
    if group == "events.k8s.io":
        return _EVENTS
    if group == "extensions":
        return "'extensions' group has been removed and cannot be used for encryption"
    if group == "*" and resource != "*":
        return "encrypting the same resource across groups is not supported"
    return ""


def _provider(provider: ProviderConfiguration, path: Path, plugins: set[str]) -> list[FieldError]:
    given = [name for name in provider.__struct_fields__ if getattr(provider, name) is not None]
    if len(given) != 1:
        detail = "more than one provider specified in a single element, should split into different list elements"
        if not given:
            detail = "provider does not contain any of the expected providers: KMS, AESGCM, AESCBC, Secretbox, Identity"
            return [invalid(path, dict.fromkeys(_GO_NAMES), detail)]
        return [invalid(path, given, detail)]  # upstream's message has the keys in it
    kind = given[0]
    if provider.kms is not None:
        return _kms(provider.kms, path.child("kms"), plugins)
    if kind == "identity":
        return []
    where = path.child(kind).child("keys")
    keys = getattr(provider, kind).keys
    if not keys:
        return [required(where, "at least one keys is required")]
    return [error for number, key in enumerate(keys) for error in _key(key, where.index(number), _KINDS[kind][1])]


def _kms(kms: KMSConfiguration, path: Path, plugins: set[str]) -> list[FieldError]:
    """Validate a plugin; `plugins` are the names of those before it."""
    errors = []
    version = kms.apiVersion or "v1"
    if not kms.name:
        errors.append(required(path.child("name"), "name is a mandatory field for a provider"))
    elif version != "v1" and ":" in kms.name:
        detail = f"invalid KMS provider name {kms.name}, must not contain ':'"
        errors.append(invalid(path.child("name"), kms.name, detail))
    elif version != "v1" and kms.name in plugins:
        detail = f"duplicate KMS provider name {kms.name}, names must be unique"
        errors.append(invalid(path.child("name"), kms.name, detail))
    plugins.add(kms.name)
    if parse_duration(kms.timeout) <= 0:
        errors.append(invalid(path.child("timeout"), kms.timeout, "timeout should be a positive value"))
    scheme = urlsplit(kms.endpoint).scheme
    if not kms.endpoint:
        errors.append(invalid(path.child("endpoint"), "", "endpoint is a mandatory field for a kms"))
    elif scheme != "unix":
        detail = f'unsupported scheme "{scheme}" for KMS provider, only unix is supported'
        errors.append(invalid(path.child("endpoint"), kms.endpoint, detail))
    if version == "v2" and kms.cachesize is not None:
        errors.append(invalid(path.child("cachesize"), kms.cachesize, "cachesize is not supported in v2"))
    elif version not in ("v1", "v2"):
        detail = "unsupported apiVersion apiVersion for KMS provider, only v1 and v2 are supported"
        errors.append(invalid(path.child("apiVersion"), version, detail))
    return errors


def _key(key: Key, path: Path, sizes: tuple[int, ...]) -> list[FieldError]:
    errors = []
    if not key.name:
        errors.append(required(path.child("name"), "name is a mandatory field for a key"))
    if not key.secret:
        return [*errors, required(path.child("secret"), "secret is a mandatory field for a key")]
    try:
        size = len(_decoded(key.secret))
    except binascii.Error:
        return [*errors, invalid(path.child("secret"), "REDACTED", "secrets must be base64 encoded")]
    if size not in sizes:
        expected = " ".join(map(str, sizes))
        detail = f"secret is not of the expected length, got {size}, expected one of [{expected}]"
        errors.append(invalid(path.child("secret"), "REDACTED", detail))
    return errors


def _decoded(secret: str) -> bytes:
    """Decode base64; line ends are ignored, as in Go."""
    return base64.b64decode(secret.replace("\r", "").replace("\n", ""), validate=True)


def _made(configuration: ProviderConfiguration) -> list[Provider]:
    if configuration.identity is not None:
        return [Identity()]
    kms = configuration.kms
    if kms is not None:
        return [KMS(kms.name, kms.endpoint, parse_duration(kms.timeout) / 1e9)]
    return [
        make(key.name, _decoded(key.secret))
        for kind, (make, _) in _KINDS.items()
        if getattr(configuration, kind) is not None
        for key in getattr(configuration, kind).keys
    ]

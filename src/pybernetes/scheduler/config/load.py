"""From the bytes of a file to a configuration: decoded strictly, with its defaults, and checked.

Syntax errors are reported together (unknown fields, keys given twice, at any depth), and after them all validation
errors. Messages are upstream's; the caller adds the name of the file.
"""

from __future__ import annotations

from typing import Any, TypeVar

from pybernetes.api import field, strict
from pybernetes.api.base import Struct
from pybernetes.api.configfile import NO_KIND, ConfigError, Scheme, check_type, not_registered, parse

from .defaults import set_defaults
from .v1 import GROUP_VERSION
from .v1.args import ARGS
from .v1.types import KubeSchedulerConfiguration
from .validation import validate

T = TypeVar("T", bound=Struct)

SCHEME = Scheme({(GROUP_VERSION, "KubeSchedulerConfiguration")}, "pkg/scheduler/apis/config/scheme/scheme.go:29")
_GROUP = GROUP_VERSION.partition("/")[0]


def load(data: bytes) -> KubeSchedulerConfiguration:
    """The configuration in a YAML or JSON file; `ConfigError` with all that is wrong."""
    value, repeated = parse(data)
    check_type(value, data, SCHEME)
    config, problems = decode(KubeSchedulerConfiguration, value)
    problems = [*repeated, *problems]
    for index, profile in enumerate(config.profiles or ()):
        for number, each in enumerate(profile.plugin_config or ()):
            where = f"decoding .profiles[{index}].pluginConfig[{number}]: "
            if each.name in ARGS:
                each.args = _args(each.name, each.args, where, problems)
    if problems:
        raise ConfigError(strict.strict_decoding_error(problems))
    set_defaults(config)
    check(config)
    return config


def default() -> KubeSchedulerConfiguration:
    """The configuration of a scheduler without a file."""
    config = KubeSchedulerConfiguration(kind="KubeSchedulerConfiguration", api_version=GROUP_VERSION)
    set_defaults(config)
    return config


def check(config: KubeSchedulerConfiguration) -> None:
    """`ConfigError` with all that is wrong with the content."""
    errors = validate(config)
    if errors:
        raise ConfigError(field.aggregate(errors))


def decode(cls: type[T], value: Any) -> tuple[T, list[str]]:
    """The value as a class, in canonical form, and its unknown or repeated fields; `ConfigError` if a type is wrong."""
    try:
        return strict.convert(cls, value)
    except strict.DecodeError as error:
        raise ConfigError(str(error)) from None


def _args(name: str, value: Any, where: str, problems: list[str]) -> Struct:
    cls = ARGS[name]
    value = {} if value is None else value
    if not isinstance(value, dict):
        raise ConfigError(f"{where}decoding args for plugin {name}: {NO_KIND}{strict.not_an_object(value)}")
    kind, version = value.get("kind") or f"{name}Args", value.get("apiVersion") or GROUP_VERSION
    if kind != f"{name}Args" and version == GROUP_VERSION and str(kind).removesuffix("Args") in ARGS:
        raise ConfigError(f"{where}args for plugin {name} were not of type {name}Args.{_GROUP}, got {kind}.{_GROUP}")
    if (kind, version) != (f"{name}Args", GROUP_VERSION):
        raise ConfigError(f"{where}decoding args for plugin {name}: {not_registered(str(version), str(kind), SCHEME)}")
    try:
        args, wrong = strict.convert(cls, value)
    except strict.DecodeError as error:
        raise ConfigError(f"{where}decoding args for plugin {name}: {error}") from None
    if wrong:
        inner = strict.strict_decoding_error(wrong)
        problems.append(f"{where}{strict.strict_decoding_error([f'decoding args for plugin {name}: {inner}'])}")
    args.kind, args.api_version = f"{name}Args", GROUP_VERSION
    return args

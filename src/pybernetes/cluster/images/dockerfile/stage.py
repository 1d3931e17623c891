"""A stage while it is built: how its containers start, its layers and history, and what instructions change of that.

The instructions here touch no files. `META` is a table of them; each gets the stage and the instruction, and says with
a ValueError what is wrong.
"""

from __future__ import annotations

import copy
import json
import posixpath
import re
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pybernetes.api.times import TimeError, parse_duration
from pybernetes.cluster.images import oci
from pybernetes.cluster.images.dockerfile import words
from pybernetes.cluster.images.dockerfile.parsing import Instruction
from pybernetes.cri.embedded.signals import signal_number

SHELL = ("/bin/sh", "-c")
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "NO_PROXY", "ALL_PROXY")
PREDEFINED = (*PROXIES, *map(str.lower, PROXIES), "SOURCE_DATE_EPOCH")
"""Arguments that need no ARG; those of proxies are for RUN only and change nothing that is kept."""


@dataclass(frozen=True)
class Layer:
    """A layer: its digest unpacked, the folder that it is unpacked in, and its packed bytes."""

    diff: str
    folder: str
    blob: oci.Blob


@dataclass
class Stage:
    """A stage. `key` names what was done so far: two stages with one key have the same files and configuration."""

    name: str
    escape: str = "\\"
    document: dict[str, Any] = field(default_factory=dict)
    """The image's configuration; `config` in it is how containers start."""
    layers: list[Layer] = field(default_factory=list)
    key: str = ""
    arguments: dict[str, str] = field(default_factory=dict)
    shell: tuple[str, ...] = SHELL
    has_command: bool = False
    """Whether CMD was said in this stage: an ENTRYPOINT takes away only what was inherited."""
    warnings: list[str] = field(default_factory=list)

    @property
    def config(self) -> dict[str, Any]:
        """How its containers start."""
        found: dict[str, Any] = self.document.setdefault("config", {})
        return found

    @property
    def environment(self) -> dict[str, str]:
        """The variables of its containers."""
        return dict(each.partition("=")[::2] for each in self.config.get("Env") or ())

    @property
    def variables(self) -> dict[str, str]:
        """The variables for instructions: ENV wins over ARG; a base may leave PATH to the runtime."""
        name, _, value = oci.PATH.partition("=")
        return {name: value, **self.arguments, **self.environment}

    @property
    def user(self) -> str:
        return str(self.config.get("User") or "")

    @property
    def folder(self) -> str:
        """The working directory."""
        return str(self.config.get("WorkingDir") or "/")

    def expand(self, text: str) -> str:
        """Puts variables in."""
        return words.expand(text, self.variables, self.escape)

    def tell(self, by: str, *, empty: bool) -> None:
        """Adds to the history."""
        entry: dict[str, Any] = {"created": self.document["created"], "created_by": by, "comment": "pyb image build"}
        self.document.setdefault("history", []).append({**entry, "empty_layer": True} if empty else entry)

    def next(self, name: str) -> Stage:
        """The beginning of a stage that goes on from here."""
        return Stage(
            name,
            self.escape,
            copy.deepcopy(self.document),
            list(self.layers),
            self.key,
            dict(self.arguments),
            self.shell,
        )


def scratch(name: str, escape: str, created: str) -> Stage:
    """The beginning of a stage with nothing in it."""
    document: dict[str, Any] = {
        "architecture": oci.this_architecture(),
        "os": "linux",
        "created": created,
        "config": {"Env": [oci.PATH]},
        "rootfs": {"type": "layers", "diff_ids": []},
        "history": [],
    }
    return Stage(name, escape, document, key="scratch")


def base_document(raw: bytes, created: str) -> dict[str, Any]:
    """The configuration of an image that a stage begins from. Strangers wrote it: ValueError for another shape."""
    document: dict[str, Any] = json.loads(raw)
    document["created"] = created
    document["config"] = config = document.get("config") or {}
    document["history"] = document.get("history") or []
    shapes = {"Labels": dict, "ExposedPorts": dict, "Volumes": dict, "OnBuild": list, "Shell": list}
    wrong = [key for key, shape in shapes.items() if not isinstance(config.get(key) or shape(), shape)]
    if wrong or not isinstance(document["history"], list):
        raise ValueError(f"the image's configuration is none: {', '.join(wrong) or 'history'} has another shape")
    config.update({key: [str(each) for each in config[key]] for key in ("OnBuild", "Shell") if config.get(key)})
    return document


def argument_values(
    text: str, given: Mapping[str, str], outer: Mapping[str, str], expand: Callable[[str], str], escape: str
) -> dict[str, str]:
    """ARG: what was given counts, then the default, then what an ARG before the first FROM said."""
    found: dict[str, str] = {}
    for word in words.split(text, escape):
        name, equals, default = word.partition("=")
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise ValueError(f"{name!r} is no name of an argument")
        if name in given:
            found[name] = given[name]
        elif equals:
            found[name] = expand(default)
        elif name in outer:
            found[name] = outer[name]
    return found


def command(stage: Stage, text: str) -> list[str]:
    """`["a", "b"]`, or a line for the shell."""
    found = words.json_words(text)
    if found is not None:
        return found
    if text.startswith("["):
        stage.warnings.append("it looks like a list, but is no JSON: taken as a line for the shell")
    return [*stage.shell, text] if text else []


def _env(stage: Stage, instruction: Instruction) -> None:
    variables = stage.variables
    environment = stage.environment
    for name, value in words.pairs(instruction.text, stage.escape):
        expanded = words.expand(name, variables, stage.escape)
        if not expanded or "=" in expanded:
            raise ValueError(f"{name!r} is no name of a variable")
        environment[expanded] = words.expand(value, variables, stage.escape)
    stage.config["Env"] = [f"{name}={value}" for name, value in environment.items()]


def _label(stage: Stage, instruction: Instruction) -> None:
    labels = dict(stage.config.get("Labels") or {})
    for name, value in words.pairs(instruction.text, stage.escape):
        labels[stage.expand(name)] = stage.expand(value)
    stage.config["Labels"] = labels


def _user(stage: Stage, instruction: Instruction) -> None:
    user = stage.expand(instruction.text)
    if not user or len(user.split()) != 1:
        raise ValueError(f"{user!r} is no user: NAME, UID, and a :GROUP if it matters")
    stage.config["User"] = user


def working_directory(stage: Stage, instruction: Instruction) -> str:
    """WORKDIR's path in full."""
    path = stage.expand(instruction.text)
    if not path:
        raise ValueError("the path is empty")
    return "/" + posixpath.normpath(posixpath.join(stage.folder, path)).lstrip("/")


def _cmd(stage: Stage, instruction: Instruction) -> None:
    stage.config["Cmd"] = command(stage, instruction.text)
    stage.has_command = True


def _entrypoint(stage: Stage, instruction: Instruction) -> None:
    stage.config["Entrypoint"] = command(stage, instruction.text)
    if not stage.has_command:
        stage.config.pop("Cmd", None)  # arguments of another program


def _shell(stage: Stage, instruction: Instruction) -> None:
    found = words.json_words(instruction.text)
    if not found:
        raise ValueError('wants a list: ["executable", "parameter"]')
    stage.shell = tuple(found)
    stage.config["Shell"] = found


def _expose(stage: Stage, instruction: Instruction) -> None:
    ports = dict(stage.config.get("ExposedPorts") or {})
    for word in stage.expand(instruction.text).split():
        match = re.fullmatch(r"(\d{1,5})(?:-(\d{1,5}))?(?:/(tcp|udp|sctp))?", word.lower())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
        if match is None or not 0 < first <= last < 65536:
            raise ValueError(f"{word!r} is no port: NUMBER[-NUMBER][/tcp|udp|sctp]")
        ports |= {f"{number}/{match[3] or 'tcp'}": {} for number in range(first, last + 1)}
    stage.config["ExposedPorts"] = dict(sorted(ports.items()))


def _volume(stage: Stage, instruction: Instruction) -> None:
    found = words.json_words(instruction.text)
    paths = [stage.expand(each) for each in (instruction.text.split() if found is None else found)]
    if not paths or not all(paths):
        raise ValueError("wants paths, and none of them empty")
    volumes: dict[str, Any] = {posixpath.normpath(posixpath.join("/", path)): {} for path in paths}
    stage.config["Volumes"] = {**(stage.config.get("Volumes") or {}), **volumes}


def _stopsignal(stage: Stage, instruction: Instruction) -> None:
    name = stage.expand(instruction.text)
    usual = signal_number(name) == signal.SIGTERM and name.upper().removeprefix("SIG") not in ("TERM", "15")
    if usual or not 0 < signal_number(name) <= signal.SIGRTMAX:
        raise ValueError(f"{name!r} is no signal")
    stage.config["StopSignal"] = name


def _healthcheck(stage: Stage, instruction: Instruction) -> None:
    kind, rest = [*instruction.text.split(None, 1), ""][:2]
    if kind.upper() == "NONE":
        if rest.strip() or instruction.flags:
            raise ValueError("NONE takes neither arguments nor flags")
        stage.config["Healthcheck"] = {"Test": ["NONE"]}
        return
    if kind.upper() != "CMD" or not rest.strip():
        raise ValueError("wants NONE, or CMD and a command")
    words_given = words.json_words(rest.strip())
    check: dict[str, Any] = {"Test": ["CMD-SHELL", rest.strip()] if words_given is None else ["CMD", *words_given]}
    for flag, key in (
        ("interval", "Interval"),
        ("timeout", "Timeout"),
        ("start-period", "StartPeriod"),
        ("start-interval", "StartInterval"),
    ):
        if flag in instruction.flags:
            check[key] = _duration(instruction.flag(flag))
    if "retries" in instruction.flags:
        if not instruction.flag("retries").isdecimal():
            raise ValueError(f"--retries={instruction.flag('retries')} is no number")
        check["Retries"] = int(instruction.flag("retries"))
    stage.config["Healthcheck"] = check
    stage.warnings.append("HEALTHCHECK is kept in the image, but Kubernetes does not run it: pods have probes")


def _duration(text: str) -> int:
    """Nanoseconds."""
    try:
        found = parse_duration(text)
    except TimeError:
        found = -1
    if found < 0:
        raise ValueError(f"{text!r} is no duration, as 1m30s is")
    return found


def _maintainer(stage: Stage, instruction: Instruction) -> None:
    stage.document["author"] = instruction.text
    stage.warnings.append("MAINTAINER is old: LABEL org.opencontainers.image.authors=... says the same")


def _onbuild(stage: Stage, instruction: Instruction) -> None:
    stage.config["OnBuild"] = [*(stage.config.get("OnBuild") or ()), instruction.text]


META: dict[str, Callable[[Stage, Instruction], None]] = {
    "CMD": _cmd,
    "ENTRYPOINT": _entrypoint,
    "ENV": _env,
    "EXPOSE": _expose,
    "HEALTHCHECK": _healthcheck,
    "LABEL": _label,
    "MAINTAINER": _maintainer,
    "ONBUILD": _onbuild,
    "SHELL": _shell,
    "STOPSIGNAL": _stopsignal,
    "USER": _user,
    "VOLUME": _volume,
}

"""Calling a plugin: an executable with JSON on stdin and `CNI_*` in its environment, or one of ours in this process.

Both ways look the same from outside: the same variables and the same document go in, the same result or error comes
out. A plugin file that is being written while we start it (`text file busy`) is waited for.
"""

from __future__ import annotations

import errno
import json
import os
import stat
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from . import skel
from .errors import DECODING_FAILURE, PLUGIN_NOT_AVAILABLE, CNIError, reason
from .versions import CURRENT

BUSY_RETRIES = 5
BUSY_DELAY = 1.0  # seconds; a plugin is written in much less


@dataclass(frozen=True)
class Arguments:
    """The CNI arguments in a plugin's environment."""

    command: str
    container_id: str = ""
    netns: str = ""
    ifname: str = ""
    args: Sequence[tuple[str, str]] = ()
    path: Sequence[str] = ()

    def environ(self) -> dict[str, str]:
        """The variables of the specification."""
        return {
            "CNI_COMMAND": self.command,
            "CNI_CONTAINERID": self.container_id,
            "CNI_NETNS": self.netns,
            "CNI_ARGS": ";".join(f"{key}={value}" for key, value in self.args),
            "CNI_IFNAME": self.ifname,
            "CNI_PATH": os.pathsep.join(self.path),
        }


@dataclass(frozen=True)
class Plugins:
    """Where plugins come from: folders with executables, and those that `in_process` says run here."""

    path: Sequence[str]
    in_process: Callable[[str], bool] = lambda _: False
    timeout: float | None = None
    sleep: Callable[[float], None] = field(default=time.sleep, compare=False)

    def call(self, plugin: str, environ: Mapping[str, str], config: Mapping[str, Any]) -> dict[str, Any] | None:
        """Runs a plugin and answers what it printed; None if that was nothing."""
        if self.in_process(plugin):
            check_plugin_name(plugin)
            return skel.call_built_in(plugin, environ, dict(config), self)
        file = find(plugin, self.path)
        printed = self._run(file, environ, json.dumps(config).encode())
        if not printed.strip():
            return None
        try:
            answer = json.loads(printed)
        except ValueError as error:
            raise CNIError(f"failed to unmarshal raw result: {error}", DECODING_FAILURE) from None
        if not isinstance(answer, dict | None):
            raise CNIError(f"failed to unmarshal raw result: not an object: {printed!r}", DECODING_FAILURE)
        return answer or {}

    def versions(self, plugin: str) -> list[str]:
        """Which versions of the specification the plugin speaks."""
        # Plugins built with the first skeletons want the other variables even for VERSION.
        dummy = Arguments("VERSION", netns="dummy", ifname="dummy", path=["dummy"])
        try:
            answer = self.call(plugin, dummy.environ(), {"cniVersion": CURRENT}) or {}
        except CNIError as error:
            if str(error) == "unknown CNI_COMMAND: VERSION":
                return ["0.1.0"]
            raise
        supported = answer.get("supportedVersions") or ["0.1.0", "0.2.0"]
        return [str(version) for version in supported]

    def _run(self, file: str, environ: Mapping[str, str], stdin: bytes) -> bytes:
        import subprocess  # 15 ms that plugins without delegates need not pay

        for attempt in range(BUSY_RETRIES + 1):
            try:
                done = subprocess.run(
                    [file],
                    input=stdin,
                    env=os.environ | environ,
                    capture_output=True,
                    timeout=self.timeout,
                    check=False,
                )
                break
            except subprocess.TimeoutExpired:
                raise CNIError(f"netplugin failed: {file} did not end within {self.timeout:g} s") from None
            except OSError as error:
                if error.errno != errno.ETXTBSY or attempt == BUSY_RETRIES:
                    raise CNIError(f"netplugin failed with no error message: {file}: {reason(error)}") from None
                self.sleep(BUSY_DELAY)
        if done.returncode == 0:
            sys.stderr.buffer.write(done.stderr)
            return done.stdout
        raise _failure(done.returncode, done.stdout, done.stderr)


def check_plugin_name(plugin: str) -> None:
    """Refuses what would not stay in the folders of plugins."""
    if not plugin:
        raise CNIError("no plugin name provided")
    if "/" in plugin or plugin in (".", ".."):
        raise CNIError(f"invalid plugin name: {plugin}")


def find(plugin: str, path: Sequence[str]) -> str:
    """The plugin's file, in the first folder that has one."""
    check_plugin_name(plugin)
    if not path:
        raise CNIError("no paths provided")
    for folder in path:
        file = os.path.join(folder, plugin)
        try:
            if stat.S_ISREG(os.stat(file).st_mode):
                return file
        except OSError:
            continue
    raise CNIError(f'failed to find plugin "{plugin}" in path [{" ".join(path)}]', PLUGIN_NOT_AVAILABLE)


def _failure(code: int, stdout: bytes, stderr: bytes) -> CNIError:
    how = f"exit status {code}" if code >= 0 else f"signal: {_signal_name(-code)}"
    if not stdout:
        if not stderr:
            return CNIError(f"netplugin failed with no error message: {how}", 0)
        return CNIError(f"netplugin failed: {json.dumps(stderr.decode(errors='replace'))}: {how}", 0)
    try:
        said = json.loads(stdout)
        return CNIError(str(said.get("msg", "")), int(said.get("code", 0)), str(said.get("details", "")))
    except (ValueError, TypeError, AttributeError) as error:
        text = json.dumps(stdout.decode(errors="replace"))
        return CNIError(f"netplugin failed but error parsing its diagnostic message {text}: {error}", 0)


def _signal_name(number: int) -> str:
    import signal

    return (signal.strsignal(number) or str(number)).lower()

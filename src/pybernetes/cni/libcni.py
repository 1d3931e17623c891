"""The runtime's side of CNI: attaching containers to networks by calling the plugins of a config list.

ADD goes through the plugins in order, each seeing what those before it did (`prevResult`); DEL goes back. What was done
is remembered (`cache.py`), so that CHECK and DEL pass the same arguments to plugins as ADD.

All of this waits (for processes, for the kernel): call it in a thread, `await asyncio.to_thread(cni.add, ...)`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pybernetes.trace import recorder

from . import config, names, results
from .cache import DEFAULT, Attachment, Cache
from .config import NetworkConfigList, PluginConfig
from .errors import INVALID_NETWORK_CONFIG, CNIError
from .invoke import Arguments, Plugins
from .skel import BUILT_IN
from .versions import at_least


@dataclass(frozen=True)
class RuntimeConf:
    """The container that is to be attached, and what the runtime has to say to plugins about it."""

    container_id: str
    netns: str
    ifname: str = "eth0"
    args: tuple[tuple[str, str], ...] = ()  # K8S_POD_NAMESPACE and the like
    capability_args: Mapping[str, Any] | None = None  # portMappings, bandwidth, dns, ipRanges...

    @property
    def key(self) -> tuple[str, str]:
        return self.container_id, self.ifname


class CNI:
    """Attaches containers to networks, checks and detaches them.

    `path` are the folders with plugins; `in_process` are the types of plugins for which ours are used instead, without
    a process (all that we have, if nothing is said).
    """

    def __init__(
        self,
        path: Sequence[str],
        cache: Path = DEFAULT,
        in_process: Collection[str] = BUILT_IN,
        timeout: float | None = None,
    ) -> None:
        self.path = list(path)
        self.cache = Cache(cache)
        self.plugins = Plugins(self.path, frozenset(in_process).__contains__, timeout)

    def add(self, network: NetworkConfigList, runtime: RuntimeConf) -> results.Result:
        """Attaches the container; the result of the last plugin, in the newest form."""
        names.check_container_id(runtime.container_id)
        names.check_network_name(network.name)
        names.check_interface_name(runtime.ifname)
        result: results.Result | None = None
        for plugin in network.plugins:
            try:
                answer = self._call("ADD", network, plugin, runtime, result) or {}
                result = results.read(answer, network.version)
            except CNIError as error:
                raise error.within(f"plugin {plugin.describe()} failed (add)") from error
        if result is None:
            raise CNIError(f'network "{network.name}" has no plugins', INVALID_NETWORK_CONFIG)
        self.cache.put(
            Attachment(
                network.name,
                runtime.container_id,
                runtime.ifname,
                runtime.netns,
                runtime.args,
                dict(runtime.capability_args or {}),
                network.raw,
                results.written(result, network.version),
            )
        )
        return result

    def check(self, network: NetworkConfigList, runtime: RuntimeConf) -> None:
        """Asks all plugins whether what they did is still in place; an error says what is not."""
        if not at_least(network.version, "0.4.0"):
            raise CNIError(f'configuration version "{network.version}" does not support the CHECK command')
        if network.disable_check:
            return
        try:
            cached = self.cache.get(network.name, *runtime.key)
        except CNIError as error:
            raise error.within(f'failed to get network "{network.name}" cached result') from None
        previous = _cached_result(cached, network)
        for plugin in network.plugins:
            self._call("CHECK", network, plugin, runtime, previous)

    def delete(self, network: NetworkConfigList, runtime: RuntimeConf) -> None:
        """Detaches the container. May be called again, also after a failure or when ADD never finished."""
        previous = None
        if at_least(network.version, "0.4.0"):
            try:
                previous = _cached_result(self.cache.get(network.name, *runtime.key), network)
            except CNIError:
                self.cache.forget(network.name, *runtime.key)  # unreadable: delete without it rather than never
        for plugin in reversed(network.plugins):
            try:
                self._call("DEL", network, plugin, runtime, previous)
            except CNIError as error:
                raise error.within(f"plugin {plugin.describe()} failed (delete)") from error
        self.cache.forget(network.name, *runtime.key)

    def delete_cached(self, runtime: RuntimeConf) -> bool:
        """Detaches the container with the configurations that it was attached with; whether there were any.

        The configuration of today may be another one, or gone.
        """
        cached = [each for each in self.cache.attachments(runtime.container_id) if each.config]
        for each in cached:
            attached = replace(
                runtime, ifname=each.ifname, args=each.args or runtime.args, capability_args=each.capability_args
            )
            self.delete(config.from_bytes(each.config), attached)
        return bool(cached)

    def remembered(self, network: NetworkConfigList, runtime: RuntimeConf) -> RuntimeConf:
        """The runtime's words as they were at ADD, for a DEL by a caller that did not keep them."""
        cached = self.cache.get(network.name, *runtime.key)
        if cached is None:
            return runtime
        return replace(runtime, args=cached.args or runtime.args, capability_args=cached.capability_args)

    def gc(self, network: NetworkConfigList, valid: Collection[tuple[str, str]]) -> None:
        """Deletes what is remembered of other attachments than `valid` (container id, interface), then asks the plugins
        to sweep up (from version 1.1.0 on). All is tried; the error tells everything that failed."""
        if network.disable_gc:
            return
        problems = []
        for stale in self.cache.attachments():
            if stale.network != network.name or (stale.container_id, stale.ifname) in valid:
                continue
            runtime = RuntimeConf(stale.container_id, stale.netns, stale.ifname, stale.args, stale.capability_args)
            try:
                self.delete(network, runtime)
            except CNIError as error:
                problems.append(f"failed to delete stale attachment {stale.container_id} {stale.ifname}: {error}")
        if at_least(network.version, "1.1.0"):
            listed = [{"containerID": container_id, "ifname": ifname} for container_id, ifname in sorted(valid)]
            # The specification's first text of 1.1.0 had the second name.
            extra = {"cni.dev/valid-attachments": listed, "cni.dev/attachments": listed}
            for plugin in network.plugins:
                try:
                    self._call("GC", network, plugin, None, None, extra)
                except CNIError as error:
                    problems.append(f"failed to GC plugin {plugin.type}: {error}")
        if problems:
            raise CNIError("\n".join(problems))

    def status(self, network: NetworkConfigList) -> None:
        """Runs STATUS of all plugins; before version 1.1.0 there is no such call."""
        if at_least(network.version, "1.1.0"):
            for plugin in network.plugins:
                self._call("STATUS", network, plugin, None, None)

    def validate(self, network: NetworkConfigList) -> frozenset[str]:
        """Checks that all plugins are there and speak the network's version; the capabilities they can use."""
        problems = []
        for plugin in network.plugins:
            try:
                if (network.version or "0.1.0") not in self.plugins.versions(plugin.type):
                    problems.append(f'plugin {plugin.type} does not support config version "{network.version}"')
            except CNIError as error:
                problems.append(str(error))
        if problems:
            raise CNIError(f"[{' '.join(problems)}]", INVALID_NETWORK_CONFIG)
        return network.capabilities

    def _call(
        self,
        command: str,
        network: NetworkConfigList,
        plugin: PluginConfig,
        runtime: RuntimeConf | None,
        previous: results.Result | None,
        extra: Mapping[str, Any] | None = None,
    ) -> dict[str, Any] | None:
        with recorder.child(f"CNI {command} {plugin.type}"):
            written = {**plugin.raw, "name": network.name, "cniVersion": network.version, **(extra or {})}
            if previous is not None:
                written["prevResult"] = results.written(previous, network.version)
            if runtime is None:
                return self.plugins.call(plugin.type, Arguments(command, path=self.path).environ(), written)
            offered = runtime.capability_args or {}
            used = {name: offered[name] for name in sorted(plugin.capabilities) if name in offered}
            if used:
                written["runtimeConfig"] = used
            arguments = Arguments(command, runtime.container_id, runtime.netns, runtime.ifname, runtime.args, self.path)
            return self.plugins.call(plugin.type, arguments.environ(), written)


def _cached_result(cached: Attachment | None, network: NetworkConfigList) -> results.Result | None:
    return None if cached is None or cached.result is None else results.read(cached.result, network.version)

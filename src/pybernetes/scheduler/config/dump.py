"""A configuration as a file again, with everything that was defaulted: what `--write-config-to` writes."""

from __future__ import annotations

import msgspec

from pybernetes.api.base import Struct
from pybernetes.api.gocompat import goencoder
from pybernetes.api.yaml import json_to_yaml
from pybernetes.client.keys import copy

from .plugins import MULTI_POINT, POINTS, plugin_set
from .v1.types import KubeSchedulerConfiguration, Plugins

_encode = msgspec.json.Encoder(order="deterministic").encode


def dump(config: KubeSchedulerConfiguration) -> bytes:
    """The YAML of a configuration that has its defaults, in the form upstream writes it."""
    for profile in config.profiles or ():
        for each in profile.plugin_config or ():
            if isinstance(each.args, Struct):
                goencoder.fill(each.args)
    config = copy(config)  # by which arguments of plugins become plain values
    connection = config.client_connection
    if connection is not None:
        connection.accept_content_types = connection.accept_content_types or ""
        connection.kubeconfig = connection.kubeconfig or ""
    ignored = sorted(
        resource.name or ""
        for extender in config.extenders or ()
        for resource in extender.managed_resources or ()
        if resource.ignored_by_scheduler
    )
    for profile in config.profiles or ():
        for point in (*POINTS, MULTI_POINT):
            found = plugin_set(profile.plugins or Plugins(), point)
            for plugin in (*(found.enabled or ()), *(found.disabled or ())):
                plugin.weight = plugin.weight or 0
        for each in profile.plugin_config or ():
            if ignored and each.name == "NodeResourcesFit" and each.args is not None:
                each.args["ignoredResources"] = sorted({*(each.args.get("ignoredResources") or ()), *ignored})
        profile.plugin_config = sorted(profile.plugin_config or (), key=lambda each: each.name or "") or None
    found = msgspec.json.decode(goencoder.encode(config))
    qps = found["clientConnection"].get("qps", 0)
    if qps == int(qps):  # Go prints no point where none is needed
        found["clientConnection"]["qps"] = int(qps)
    return json_to_yaml(_encode(found))

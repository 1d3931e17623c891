"""The cluster that a command is about: --name or --data-dir, else that of the kubeconfig's current context."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from pybernetes.cluster.commands import flags
from pybernetes.cluster.errors import ClusterError
from pybernetes.cluster.layout import DEFAULT_NAME, Layout, clusters, locate

if TYPE_CHECKING:
    from pybernetes.client.config import Config


def cluster_of(arguments: argparse.Namespace) -> tuple[Layout | None, Config]:
    """The cluster that is meant, if it is one of this machine, and the credentials for it."""
    from pybernetes.client import config

    try:
        if arguments.name is not None or arguments.data_dir is not None:
            layout = locate(arguments.name or DEFAULT_NAME, arguments.data_dir)
            if layout.read_record() is None:
                raise ClusterError(f"there is no cluster {layout.name!r}; {flags.command('up', layout.name)} makes one")
            own = layout.kubeconfig if not arguments.kubeconfig and layout.kubeconfig.exists() else None
            return layout, config.load(str(own) if own else arguments.kubeconfig)
        settings = config.load(arguments.kubeconfig)
        there = [each for each in clusters() if (record := each.read_record()) and record.server == settings.server]
        if not there:
            default = locate(DEFAULT_NAME)
            if not arguments.kubeconfig and not settings.server and default.kubeconfig.exists():
                return default, config.load(str(default.kubeconfig))
        return (there[0] if there else None), settings
    except (config.ConfigError, OSError) as error:
        raise ClusterError(str(error)) from error

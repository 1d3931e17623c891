"""The labels and annotations by which a kubelet recognises its pods and containers in the runtime.

They are upstream's, so that tools that look into the runtime (crictl, log shippers) find what they expect, and they
are all that is needed to go on after a restart: nothing about a running container is kept anywhere else.
"""

from __future__ import annotations

POD_NAME = "io.kubernetes.pod.name"
POD_NAMESPACE = "io.kubernetes.pod.namespace"
POD_UID = "io.kubernetes.pod.uid"
CONTAINER_NAME = "io.kubernetes.container.name"

# annotations of containers
DELETION_GRACE_PERIOD = "io.kubernetes.pod.deletionGracePeriod"
TERMINATION_GRACE_PERIOD = "io.kubernetes.pod.terminationGracePeriod"
HASH = "io.kubernetes.container.hash"
RESTART_COUNT = "io.kubernetes.container.restartCount"
TERMINATION_MESSAGE_PATH = "io.kubernetes.container.terminationMessagePath"
TERMINATION_MESSAGE_POLICY = "io.kubernetes.container.terminationMessagePolicy"
PRE_STOP_HANDLER = "io.kubernetes.container.preStopHandler"
PORTS = "io.kubernetes.container.ports"

# annotations of pods
CONFIG_SOURCE = "kubernetes.io/config.source"
CONFIG_MIRROR = "kubernetes.io/config.mirror"
CONFIG_HASH = "kubernetes.io/config.hash"
CONFIG_SEEN = "kubernetes.io/config.seen"

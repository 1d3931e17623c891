"""The query parameters of operations: the fields of the option kinds, and those of pods' connect subresources."""

from __future__ import annotations

from typing import NamedTuple

from pybernetes.api.base import Struct
from pybernetes.api.meta.v1 import CreateOptions, DeleteOptions, ListOptions, PatchOptions
from pybernetes.api.schema import fields


class Parameter(NamedTuple):
    """One parameter of a path or its query."""

    name: str
    type: str
    place: str = "query"
    description: str = ""


_TYPES = {"bool": "boolean", "int": "integer", "string": "string", "list": "string"}
# Our own words.
_WORDS = {
    "allowWatchBookmarks": "Whether a watch may send BOOKMARK events, which carry nothing but a resourceVersion.",
    "command": "The command to run and its arguments, one parameter for each word.",
    "container": "The container; may be left out if the pod has one only.",
    "continue": "Where to go on with a list that was cut by limit: the token of its metadata.",
    "dryRun": "All: go through every step, but keep nothing.",
    "fieldManager": "Who writes, as managedFields names it.",
    "fieldSelector": "Return only objects with these values of fields.",
    "fieldValidation": "What to do about unknown or repeated fields: Ignore, Warn or Strict.",
    "follow": "Go on with what is logged from now on.",
    "force": "Take over fields that others manage; for apply only.",
    "gracePeriodSeconds": "How long the object may take to stop; 0 means at once.",
    "ignoreStoreReadErrorWithClusterBreakingPotential": "Remove an object that cannot be read, without any check.",
    "insecureSkipTLSVerifyBackend": "Do not verify the certificate of the kubelet.",
    "labelSelector": "Return only objects with these labels.",
    "limit": "How many objects to return at most; see continue.",
    "limitBytes": "How many bytes to return at most.",
    "orphanDependents": "Deprecated: see propagationPolicy.",
    "ports": "The ports to forward.",
    "pretty": "Whether the answer is indented for people to read.",
    "previous": "The log of the container that ran before this one.",
    "propagationPolicy": "What happens to objects that this one owns: Orphan, Background or Foreground.",
    "resourceVersion": "How new the answer must be, or where a watch begins.",
    "resourceVersionMatch": "How resourceVersion is meant: Exact or NotOlderThan.",
    "sendInitialEvents": "Begin a watch with the objects that exist.",
    "shardSelector": "Return only objects in these ranges of hashes.",
    "sinceSeconds": "Only what was logged in the last seconds.",
    "stderr": "Connect the standard error.",
    "stdin": "Connect the standard input.",
    "stdout": "Connect the standard output.",
    "stream": "All, Stdout or Stderr.",
    "tailLines": "Only this many lines from the end.",
    "timeoutSeconds": "How long the call may take.",
    "timestamps": "Begin each line with its time.",
    "tty": "Connect a terminal.",
    "watch": "Send changes as they happen.",
}


def _query(name: str, type_: str = "string") -> Parameter:
    return Parameter(name, type_, "query", _WORDS.get(name, ""))


def _of(cls: type[Struct], *without: str) -> tuple[Parameter, ...]:
    skipped = ("kind", "apiVersion", *without)
    return tuple(_query(each.wire, _TYPES[each.kind]) for each in fields(cls) if each.wire not in skipped)


NAMESPACE = Parameter("namespace", "string", "path", "The namespace of the object.")
PRETTY = _query("pretty")
PATH = Parameter("path", "string", "path", "The path behind the proxy.")
LIST = _of(ListOptions)
CREATE = _of(CreateOptions)
PATCH = _of(PatchOptions)
DELETE = _of(DeleteOptions, "preconditions")
DELETE_COLLECTION = (*DELETE, *_of(ListOptions, "watch", "allowWatchBookmarks"))

_STREAMS = (*(_query(name, "boolean") for name in ("stdin", "stdout", "stderr", "tty")), _query("container"))
_PROXY = (Parameter("path", "string", "query", "The path to ask for behind the proxy."),)
# By the kind of options, or the name of the subresource where it speaks the kind of its resource.
SUBRESOURCES: dict[str, tuple[Parameter, ...]] = {
    "PodAttachOptions": _STREAMS,
    "PodExecOptions": (*_STREAMS, _query("command")),
    "PodPortForwardOptions": (_query("ports", "integer"),),
    "PodProxyOptions": _PROXY,
    "ServiceProxyOptions": _PROXY,
    "NodeProxyOptions": _PROXY,
    "log": (
        *(_query(name, "boolean") for name in ("follow", "previous", "timestamps", "insecureSkipTLSVerifyBackend")),
        *(_query(name, "integer") for name in ("sinceSeconds", "tailLines", "limitBytes")),
        _query("container"),
        _query("stream"),
    ),
}


def name_of(kind: str) -> Parameter:
    """The name in a path."""
    return Parameter("name", "string", "path", f"The name of the {kind}.")

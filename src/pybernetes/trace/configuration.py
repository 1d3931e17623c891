"""Upstream's TracingConfiguration: where spans are exported to, and how many of them.

An `endpoint` HOST:PORT is asked over gRPC, as upstream's; an URL (ours) over HTTP.
"""

from __future__ import annotations

import re

import msgspec

DEFAULT_ENDPOINT = "localhost:4317"
MILLION = 1_000_000
VERSIONS = ("v1", "v1beta1", "v1alpha1")
_HOST_PORT = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^:/\s]+):\d{1,5}")


class Tracing(msgspec.Struct, rename="camel", forbid_unknown_fields=True, frozen=True):
    """The fields that the API server's file and the kubelet's configuration share."""

    endpoint: str | None = None
    sampling_rate_per_million: int | None = None

    @property
    def target(self) -> str:
        """Where to."""
        return self.endpoint or DEFAULT_ENDPOINT

    def problems(self, path: str = "") -> list[str]:
        """Validation errors, in upstream's wording where it has some."""
        found = []
        rate = self.sampling_rate_per_million
        if rate is not None and rate < 0:
            found.append(f"{path}samplingRatePerMillion: Invalid value: {rate}: sampling rate must be positive")
        if rate is not None and rate > MILLION:
            found.append(
                f"{path}samplingRatePerMillion: Invalid value: {rate}: "
                "sampling rate per million must be less than or equal to one million"
            )
        target = self.target
        if not target.startswith(("http://", "https://")) and not _HOST_PORT.fullmatch(target):
            found.append(f'{path}endpoint: Invalid value: "{target}": must be HOST:PORT, or an URL')
        return found


class TracingConfiguration(Tracing, rename="camel", forbid_unknown_fields=True, frozen=True):
    """The API server's file."""

    api_version: str = ""
    kind: str = ""

    def problems(self, path: str = "") -> list[str]:
        """Validation errors."""
        group, _, version = self.api_version.partition("/")
        if self.kind != "TracingConfiguration" or group != "apiserver.config.k8s.io" or version not in VERSIONS:
            what = f"{self.api_version}, Kind={self.kind}"
            return [f"{what} is not a TracingConfiguration of apiserver.config.k8s.io ({', '.join(VERSIONS)})"]
        return super().problems(path)


def of_file(content: bytes) -> TracingConfiguration:
    """The configuration in a file's JSON. Raises ValueError."""
    try:
        found = msgspec.json.decode(content, type=TracingConfiguration)
    except msgspec.DecodeError as error:
        raise ValueError(str(error)) from None
    if problems := found.problems():
        raise ValueError("; ".join(problems))
    return found

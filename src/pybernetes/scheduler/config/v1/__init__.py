"""The wire types of `kubescheduler.config.k8s.io/v1`."""

from __future__ import annotations

from typing import Final

GROUP_VERSION: Final = "kubescheduler.config.k8s.io/v1"

"""Errors of the user of the command line, or of the machine."""

from __future__ import annotations


class ClusterError(Exception):
    """One clear line for the user; the command ends with exit code 1."""

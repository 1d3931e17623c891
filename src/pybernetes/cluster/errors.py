"""What a user of the command line can get wrong, or the machine can refuse."""

from __future__ import annotations


class ClusterError(Exception):
    """One clear line for the user; the command ends with exit code 1."""

"""A container runtime of our own behind CRI: nothing but Python and a Linux kernel.

`pyb runtime` (`command.py`) serves CRI (`server.py`). Every process of a pod is a child of a second, tiny process, the
launcher (`launcher.py`), which outlives the runtime: it keeps the pipes of the logs and sees the ends of processes, so
that a runtime that is killed and started again has lost nothing.
"""

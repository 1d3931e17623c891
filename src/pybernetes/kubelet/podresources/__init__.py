"""The pod-resources socket: which devices, CPUs and claims the containers of this node have.

`v1.proto` (the messages), `server` (the socket, its limits and metrics), `describing` (pure: from what the managers
know to messages).
"""

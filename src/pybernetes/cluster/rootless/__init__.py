"""Nodes without root: in user namespaces where the kernel permits them, else as plain processes.

rights      which of the two (or root) it is here, and what is then not isolated
namespaces  a user namespace in which we are root, with as many users as the machine gives us
machine     the supervisor in such a namespace, with a network that the nodes share and one process outside of it
shared      the addresses of nodes that are plain processes
plain       such a node: its programs, and how all its processes are found and ended
wayout      what that process does: an HTTP proxy, the only way out of the network
"""

"""The network plugins of our own, one a file; each module has a `PLUGIN`. `skel.py` says how they are called."""

"""Allocates cluster IPs and node ports of Services from pools that all API servers of a cluster share.

Both live in the store and are taken by writes that only one can win, so that two servers never hand out the same one.
Taking comes before the Service is written and giving back after: what is lost in between (a crash) is kept from use
until `repair.py` finds it, but never used twice.
"""

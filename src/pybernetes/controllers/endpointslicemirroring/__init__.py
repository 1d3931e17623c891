"""Copies Endpoints that people write into EndpointSlices, which is all that proxies read."""

"""Keeps the EndpointSlices of a Service equal to its pods."""

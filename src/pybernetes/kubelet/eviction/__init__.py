"""Pods go before the machine does: eviction by memory, disk and PID pressure."""

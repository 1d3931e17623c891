"""Support for long-running processes, so that one bad task, path or file never stops the rest.

- `tasks`: long-lived tasks that are logged, counted and restarted when they fail, or fail a health check by name
- `watchdog`: measures the event loop's lag and logs what held it for more than a second
- `offload`: blocking calls on paths, sockets and devices that others control, in threads with a deadline
- `state_files`: files that survive a crash: written durably, and set aside when they cannot be read
- `removal`: removes trees of files that others made, however deep, and never through a link or a mount

The lowest layer: it imports the standard library only.
"""

"""The FUSE kernel protocol: `protocol` (the wire), `requests` (decoding and answers), `mounting`, `server`."""

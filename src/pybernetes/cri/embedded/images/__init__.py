"""Images of the embedded runtime: archives in, layers on disk, a root for each container out.

`ImageStore` (`store.py`) is all that the rest of the runtime knows; `service.py` is CRI's ImageService over it.
"""

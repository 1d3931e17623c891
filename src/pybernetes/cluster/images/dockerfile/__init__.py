"""Builds images from Dockerfiles: `building.build` is all that the command knows. See docs/images.md."""

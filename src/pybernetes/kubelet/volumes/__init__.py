"""Volumes of pods: one kind a file, all made ready and taken down by `manager.VolumeManager`."""

"""Targets of video: files, GIFs, folders, pipes."""

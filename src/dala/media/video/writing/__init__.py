"""Sinks of frames: video files, GIFs, folders, standard output."""

"""Images and video: files, filters and frames."""

from dala.media.files import load, save

__all__ = ["load", "save"]

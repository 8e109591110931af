"""Images and video: files, filters and frames."""

from dala.media.camera import camera
from dala.media.files import load, save
from dala.media.metadata import Metadata
from dala.media.video.compose import compose
from dala.media.video.sources import open_source as open
from dala.media.video.transcode import transcode
from dala.media.video.writer import writer

__all__ = ["Metadata", "camera", "compose", "load", "open", "save", "transcode", "writer"]

"""Images and video: files, filters and frames."""

from dala.media.camera import camera
from dala.media.pictures.files import load, save
from dala.media.pictures.metadata import Metadata
from dala.media.video.composing.compose import compose
from dala.media.video.reading.source_opening import open_source as open
from dala.media.video.transcode import transcode
from dala.media.video.writing.video_writer import writer

__all__ = ["Metadata", "camera", "compose", "load", "open", "save", "transcode", "writer"]

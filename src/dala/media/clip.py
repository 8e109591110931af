"""The old name of `dala.media.showcase.clip`, for one release."""

import warnings

from dala.media.showcase.clip import write_clip

__all__ = ["write_clip"]

warnings.warn(
    "dala.media.clip is called dala.media.showcase.clip now.", DeprecationWarning, stacklevel=2
)

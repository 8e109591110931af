"""Image filters: `dala.media.gpu` by a shorter name."""

import sys
from typing import TYPE_CHECKING

from dala.media import gpu

if TYPE_CHECKING:
    from dala.media.gpu import *  # noqa: F403

# The same module, so that what is set on one is seen on the other.
sys.modules[__name__] = gpu

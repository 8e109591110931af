"""Buffers, kernels and commands: `dala.gpu.compute` by a shorter name."""

import sys
from typing import TYPE_CHECKING

from dala.gpu import compute

if TYPE_CHECKING:
    from dala.gpu.compute import *  # noqa: F403

# The same module, so that what is set on one is seen on the other.
sys.modules[__name__] = compute

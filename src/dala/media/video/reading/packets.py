"""Files of encoded packets with exact time stamps, which containers would round."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

from dala.errors import MediaError, argument
from dala.media.video.reading.pyav import pyav

_HEAD = b"dala packets 1\n"
_RECORD = struct.Struct("<qqqIB")
LARGEST_PACKET_BYTES = 1 << 30


class PacketFile:
    """A file of packets, open for writing."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._file.write(_HEAD)

    def write(self, packets: list[Any]) -> None:
        """Appends packets, in decoding order."""
        for packet in packets:
            data = bytes(packet)
            duration = packet.duration or 0
            head = (packet.pts, packet.dts, duration, len(data), packet.is_keyframe)
            self._file.write(_RECORD.pack(*head))
            self._file.write(data)

    def close(self) -> None:
        self._file.close()


def read_packets(path: Path, time_base: Fraction) -> Iterator[Any]:
    """Yields the packets of a file."""
    av = pyav()
    with path.open("rb") as file:
        whole = file.read(len(_HEAD)) == _HEAD
        while whole and (head := file.read(_RECORD.size)):
            whole = len(head) == _RECORD.size
            if not whole:
                break
            pts, dts, duration, size, is_key = _RECORD.unpack(head)
            data = file.read(size) if size <= LARGEST_PACKET_BYTES else b""
            whole = len(data) == size
            packet = av.Packet(data)
            packet.pts, packet.dts, packet.duration = pts, dts, duration
            packet.time_base, packet.is_keyframe = time_base, bool(is_key)
            yield packet
    if not whole:
        raise MediaError(
            f"{path} is damaged: run without {argument('resume', 'True')}, which begins anew."
        )

"""Muxes encoded segments and the source's other streams into one file."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from heapq import merge
from pathlib import Path
from typing import Any

from dala.base.record import record
from dala.errors import MediaError, argument
from dala.media.video.reading.packets import read_packets
from dala.media.video.reading.pyav import open_container, pyav
from dala.media.video.writing.encoding import Encoding, FrameFormat, configure
from dala.media.video.writing.segments import Segment

KEPT = ("audio", "subtitle")
"""The kinds of streams that are copied from the source."""


@record
class SourceExtras:
    """What the file gets besides video: from which source, and which part of it."""

    source: Path | None
    origin_s: float
    """The source's time of its first frame."""
    start_s: float
    end_s: float | None
    rotation: int


def mux_segments(
    target: Path,
    format: str,
    segments: list[Segment],
    encoding: Encoding,
    frame_format: FrameFormat,
    extras: SourceExtras,
) -> None:
    """Writes the file by copying packets; nothing is encoded again."""
    av = pyav()
    source = None if extras.source is None else open_container(extras.source)
    out = av.open(f"file:{target}", "w", format=format)
    try:
        video = out.add_stream(encoding.encoder, rate=frame_format.rate)
        configure(video.codec_context, encoding, frame_format)
        video.time_base = frame_format.time_base
        if extras.rotation:
            video.set_display_rotation(extras.rotation)
        packets = [_video_packets(segments, video, frame_format.time_base, extras)]
        if source is not None:
            packets += _copied(source, out, extras)
        for _, packet in merge(*packets, key=lambda pair: pair[0]):
            out.mux(packet)
    except av.error.FFmpegError as error:
        raise MediaError(f"{target} cannot be written: {error.strerror or error}.") from error
    finally:
        out.close()
        if source is not None:
            source.close()


def _copied(source: Any, out: Any, extras: SourceExtras) -> list[Iterator[tuple[float, Any]]]:
    """Copies streams, chapters and metadata of the source; returns its packets."""
    others = [item for item in source.streams if item.type in KEPT]
    copied = {item.index: _stream_like(out, item) for item in others}
    out.metadata.update({k: v for k, v in source.metadata.items() if k in _METADATA})
    out.set_chapters(_chapters(source, extras))
    return [_other_packets(source, copied, extras)] if copied else []


_METADATA = ("title", "artist", "album", "comment", "date", "description", "copyright", "genre")


def _stream_like(out: Any, stream: Any) -> Any:
    """Adds a stream to the new file for the packets of a source's stream."""
    if stream.codec_context is None or stream.codec_context.name not in out.supported_codecs:
        name = "unknown" if stream.codec_context is None else stream.codec_context.name
        raise MediaError(
            f"a file {out.format.name!r} cannot hold the source's {stream.type} ({name}) as it is: "
            f"write .mkv, which holds everything, or leave the sound out by "
            f"{argument('sound', 'False')}."
        )
    made = out.add_stream_from_template(stream)
    made.metadata.update(stream.metadata)
    return made


def _video_packets(
    segments: list[Segment], stream: Any, time_base: Fraction, extras: SourceExtras
) -> Iterator[tuple[float, Any]]:
    """Yields all video packets in order, with times relative to the part's start."""
    last = None
    for segment in segments:
        for packet in read_packets(segment.path, time_base):
            _shift(packet, extras.start_s)
            if last is not None and packet.dts <= last:
                packet.dts = last + 1
            last = packet.dts
            packet.stream = stream
            yield float(packet.dts * time_base), packet


def _other_packets(
    source: Any, copied: dict[int, Any], extras: SourceExtras
) -> Iterator[tuple[float, Any]]:
    streams = [source.streams[index] for index in copied]
    for packet in source.demux(streams):
        if packet.dts is None:
            continue
        when_s = float(packet.dts * packet.time_base) - extras.origin_s
        # Packets before time 0 of a whole source are decoder preroll.
        if 0 < extras.start_s > when_s or (extras.end_s is not None and when_s >= extras.end_s):
            continue
        _shift(packet, extras.start_s)
        when_s = float(packet.dts * packet.time_base)
        packet.stream = copied[packet.stream.index]
        yield when_s, packet


def _shift(packet: Any, by_s: float) -> None:
    if by_s:
        units = round(Fraction(by_s) / packet.time_base)
        packet.dts -= units
        if packet.pts is not None:
            packet.pts -= units


def _chapters(source: Any, extras: SourceExtras) -> list[Any]:
    """Returns the chapters within the part, at their new times."""
    kept = []
    for chapter in source.chapters():
        base = chapter["time_base"]
        start, end = chapter["start"] * base, chapter["end"] * base
        if end <= extras.start_s or (extras.end_s is not None and start >= extras.end_s):
            continue
        shift = Fraction(extras.start_s)
        moved = [max(Fraction(0), when - shift) for when in (start, end)]
        kept.append({**chapter, "start": int(moved[0] / base), "end": int(moved[1] / base)})
    return kept

"""Where the results of `dala predict` go: text in one file, or drawings, one for each source."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dala.base.record import record
from dala.cli.predict_formats import FORMATS, SUFFIXES, Writing
from dala.cli.predict_sources import Source
from dala.errors import ArgumentError
from dala.media.pictures.formats import FORMATS as PICTURES
from dala.media.video.writing.encoding import SUFFIXES as VIDEOS


@record
class Planned:
    """Text of a format, in a file unless it is told; or a drawing of each source, if wanted."""

    format: str | None
    text: Path | None
    targets: list[Path | None]

    @property
    def files(self) -> list[Path]:
        """All files that would be written."""
        drawn = [target for target in self.targets if target is not None]
        return drawn if self.text is None else [self.text, *drawn]

    def writing(self) -> Writing:
        """What writes the text."""
        assert self.format is not None
        return Writing(self.format, self.text)


def plan(
    sources: Sequence[Source], out: str | None, format: str | None, *, overwrite: bool, json: bool
) -> Planned:
    """Where results go; raises if targets collide, or what is asked for goes not together."""
    none: list[Path | None] = [None] * len(sources)
    if format is not None and format not in FORMATS:
        raise ArgumentError(f"--format {format} is not one of {', '.join(FORMATS)}.")
    suffix = "" if out is None else Path(out).suffix.lower()
    format = format or SUFFIXES.get(suffix)
    if format is not None:
        if json:
            raise ArgumentError(f"--json and --format {format} are both for programs: choose one.")
        if suffix in PICTURES or suffix in VIDEOS:
            raise ArgumentError(
                f"--format {format} is text, but --out {out} is a picture or a video."
            )
        return Planned(format, None if out is None else Path(out), none)
    return Planned(None, None, none if out is None else _drawn(sources, out, overwrite=overwrite))


def _drawn(sources: Sequence[Source], out: str, *, overwrite: bool) -> list[Path | None]:
    """The target of each source that is drawn on."""
    suffix = Path(out).suffix.lower()
    if (suffix in PICTURES or suffix in VIDEOS) and not Path(out).is_dir():
        if len(sources) > 1:
            raise ArgumentError(
                f"--out {out} is one picture, but there are {len(sources)}: give a folder."
            )
        if (sources[0].kind == "picture") != (suffix in PICTURES) and suffix != ".gif":
            made = "a picture" if suffix in PICTURES else "a video"
            raise ArgumentError(f"--out {out} is {made}, but {sources[0].name} is none.")
        targets = [Path(out)]
    else:
        targets = [Path(out) / _name(source) for source in sources]
    for place, target in enumerate(targets):
        if target in targets[:place]:
            raise ArgumentError(
                f"--out {out}: two pictures would become {target}: give them one after another."
            )
        if target.resolve() == sources[place].path.resolve() and not overwrite:
            raise ArgumentError(
                f"--out {out}: {target} would be written over itself: choose another, or give "
                f"--overwrite."
            )
    return list(targets)


def _name(source: Source) -> str:
    if source.kind == "camera":
        return f"{source.name.replace(':', '_')}.mp4"
    suffix = source.path.suffix.lower()
    is_kept = source.kind == "picture" or suffix in VIDEOS
    return source.path.name if is_kept else f"{source.path.stem}.mp4"

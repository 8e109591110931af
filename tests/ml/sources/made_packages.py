"""Small packages as pip and npm know them, with a small model inside, and places to get them."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

import numpy as np

from dala.base.record import changed
from dala.ml.catalog.entries import MODELS, Entry
from dala.ml.catalog.packages import File, Package

FLOAT = {"type": "DT_FLOAT"}
SHAPE = {"shape": {"dim": [{"size": "1"}, {"size": "4"}]}}


def model_files(name: str, added: float) -> dict[str, bytes]:
    """A TensorFlow.js graph model that adds a number to four others, by path."""
    nodes = [
        {"name": "x", "op": "Placeholder", "attr": {"dtype": FLOAT, "shape": SHAPE}},
        {"name": "w", "op": "Const", "attr": {"dtype": FLOAT, "value": {"tensor": {}}}},
        {"name": "y", "op": "AddV2", "input": ["x", "w"], "attr": {"T": FLOAT}},
    ]
    weights = [{"name": "w", "shape": [4], "dtype": "float32"}]
    graph = {
        "format": "graph-model",
        "modelTopology": {"node": nodes},
        "signature": {
            "inputs": {"x": {"name": "x:0", "dtype": "DT_FLOAT", "tensorShape": SHAPE["shape"]}},
            "outputs": {"y": {"name": "y:0", "dtype": "DT_FLOAT", "tensorShape": SHAPE["shape"]}},
        },
        "weightsManifest": [{"paths": [f"{name}.bin"], "weights": weights}],
    }
    return {
        f"models/{name}.json": json.dumps(graph).encode(),
        f"models/{name}.bin": np.full(4, added, "<f4").tobytes(),
    }


def entry_of(
    name: str,
    files: dict[str, bytes],
    *,
    kind: str = "npm",
    package: str = "@dala-tests/models",
    **fields: object,
) -> Entry:
    """An entry of the catalogue for those files."""
    listed = tuple(
        File(path, len(data), hashlib.sha256(data).hexdigest()) for path, data in files.items()
    )
    made = Package(kind, package, "1.2.3", sum(map(len, files.values())), listed)
    given = {"sha256": "0" * 64, "license": "Apache-2.0", **fields}
    return changed(MODELS["posenet"], name=name, package=made, **given)


def npm_archive(
    files: dict[str, bytes], name: str = "@dala-tests/models", links: dict[str, str] | None = None
) -> bytes:
    """What `npm pack` gives: a compressed tar with everything in a folder "package"."""
    described = json.dumps({"name": name, "version": "1.2.3"}).encode()
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for path, data in {"package.json": described, **files}.items():
            member = tarfile.TarInfo(f"package/{path}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
        for path, target in (links or {}).items():
            member = tarfile.TarInfo(f"package/{path}")
            member.type, member.linkname = tarfile.SYMTYPE, target
            archive.addfile(member)
    return buffer.getvalue()


def wheel(files: dict[str, bytes], name: str = "dala-tests-models") -> tuple[str, bytes]:
    """A wheel with those files: what it is called, and its bytes."""
    plain = name.replace("-", "_")
    about = {
        f"{plain}-1.2.3.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2.3",
        f"{plain}-1.2.3.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\n"
        "Tag: py3-none-any",
        f"{plain}-1.2.3.dist-info/RECORD": "",
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in {**files, **about}.items():
            archive.writestr(path, data)
    return f"{plain}-1.2.3-py3-none-any.whl", buffer.getvalue()


class Place:
    """A server on loopback: what is at each path, and which paths were asked for."""

    def __init__(self) -> None:
        self.pages: dict[str, bytes] = {}
        self.asked: list[str] = []
        self.url = ""

    def add_package(
        self, data: bytes, name: str = "@dala-tests/models", *, promised: bytes | None = None
    ) -> None:
        """Offer an npm package as a registry does; `promised` is what it says that it has."""
        digest = hashlib.sha512(data if promised is None else promised).digest()
        dist = {
            "tarball": f"{self.url}/archive.tgz",
            "integrity": f"sha512-{base64.b64encode(digest).decode()}",
        }
        version = {"name": name, "version": "1.2.3", "dist": dist}
        page = {"name": name, "dist-tags": {"latest": "1.2.3"}, "versions": {"1.2.3": version}}
        self.pages[f"/{name}"] = json.dumps(page).encode()
        self.pages["/archive.tgz"] = data


@contextmanager
def serving() -> Iterator[Place]:
    """A server on loopback, as long as it is needed."""
    place = Place()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = unquote(self.path)
            place.asked.append(path)
            data = place.pages.get(path)
            self.send_response(404 if data is None else 200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data or b"")))
            self.end_headers()
            self.wfile.write(data or b"")

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        place.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield place
        finally:
            server.shutdown()
            thread.join()

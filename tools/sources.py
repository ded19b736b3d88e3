"""Source files from package registries, for the scripts of this folder that make data."""

import ast
import hashlib
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path


def check_source(path: Path, digest: str) -> None:
    """End the program if a file is missing, or has another sha256."""
    if not path.exists():
        sys.exit(f"{path} is missing; the docstring of {sys.argv[0]} has the commands to fetch it.")
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != digest:
        sys.exit(f"{path} has the sha256 {found} instead of {digest}.")


def read_faker_lists(archive: Path, prefix: str) -> Iterator[set[str]]:
    """Yield the texts of the lists of each language of Faker whose variables begin so."""
    with zipfile.ZipFile(archive) as files:
        for path in files.namelist():
            if not re.fullmatch(r"faker/providers/person/[^/]+/__init__.py", path):
                continue
            found = set[str]()
            for node in ast.walk(ast.parse(files.read(path))):
                if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
                    continue
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                variables = [target.id for target in targets if isinstance(target, ast.Name)]
                if any(name.startswith(prefix) for name in variables):
                    values = (n for n in ast.walk(node.value) if isinstance(n, ast.Constant))
                    found.update(n.value for n in values if isinstance(n.value, str))
            yield found


def read_package(folder: Path, name: str, path: str) -> str:
    """Return the text of the files of a package of Debian below a path."""
    (package,) = folder.glob(f"{name}_*.deb")
    content = subprocess.run(
        ["dpkg-deb", "--fsys-tarfile", package], capture_output=True, check=True
    )
    with tarfile.open(fileobj=BytesIO(content.stdout)) as files:
        found = [file for file in files if path in file.name and file.isfile()]
        return "\n".join(_decode(read.read()) for f in found if (read := files.extractfile(f)))


def _decode(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content.decode("latin-1")

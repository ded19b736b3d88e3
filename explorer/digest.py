"""Print the digest of the explorer's sources, which the built file carries."""

from hashlib import sha256
from pathlib import Path

FOLDER = Path(__file__).parent
NAMES = ("index.html", "package-lock.json", "package.json", "tsconfig.json", "vite.config.ts")


def digest_sources() -> str:
    """Return a hash of the names and contents of all files that decide the built file."""
    files = [*(FOLDER / name for name in NAMES), *(FOLDER / "src").rglob("*")]
    found = sha256()
    for file in sorted(path for path in files if path.is_file()):
        # The end of lines depends on how the sources were checked out.
        content = file.read_bytes().replace(b"\r\n", b"\n")
        name = file.relative_to(FOLDER).as_posix().encode()
        found.update(b"%s\0%d\0%s" % (name, len(content), content))
    return found.hexdigest()[:32]


if __name__ == "__main__":
    print(digest_sources())

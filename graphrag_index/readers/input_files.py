"""Search for the files of the input folder."""

import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from stat import S_ISREG
from typing import NamedTuple

from graphrag_index.errors import InputError, SettingsError, join_names
from graphrag_index.readers import READERS, describe_os_error
from graphrag_index.schema.settings.step_sections import LoadDocuments
from graphrag_index.storage.bucket import Bucket, fetch_folder, is_bucket
from graphrag_index.storage.versions import INDEX_FILE
from graphrag_nlp.text.normalize import translate_glob

# Files of the report of an evaluation, and of a proposal of `graphrag-index tune`.
REPORT_FILES, PROPOSAL_FILES = {"evaluation.json", "evaluation.html"}, {"prompts", "changes.diff"}
# Beginning of an `index.json` file; `move_pointer` writes it.
_INDEX_FILE_START = re.compile(rb'\{\s*"format": \d+,\s*"version": \d+,\s*"workflow": "')
# Name of a table file, which an interrupted run leaves without an `index.json`.
_TABLE_FILE_NAME = re.compile(r"\w+-[0-9a-f]{12}\.parquet")


class InputFile(NamedTuple):
    """A file to read, or a file or folder that cannot be read because of `problem`."""

    name: str  # path relative to the input folder, with /
    path: Path
    size: int = 0
    problem: str = ""


def input_folder(settings: LoadDocuments, root: Path) -> Path:
    """Return the folder of the documents; those of a bucket are fetched once in a process."""
    if is_bucket(settings.folder):
        return fetch_folder(settings.folder)
    return root / Path(settings.folder).expanduser()


def name_input(settings: LoadDocuments, root: Path) -> str:
    """Return the folder of the documents, or its address in a bucket, for messages."""
    if is_bucket(settings.folder):
        return Bucket(settings.folder).url
    return str(input_folder(settings, root))


def check_output_folder(settings: LoadDocuments, root: Path, output: Path) -> None:
    """Raise SettingsError if the output is the input folder or contains the input folder.

    An output inside the input folder is allowed: `find_files` skips the output.
    """
    folder = Path(os.path.realpath(input_folder(settings, root)))
    output = Path(os.path.realpath(output))
    # Compare the folders, not only paths: different paths may name the same folder.
    if any(
        path == output
        or (os.path.exists(path) and os.path.exists(output) and path.samefile(output))
        for path in (folder, *folder.parents)
    ):
        what = "is" if output == folder else "holds"
        raise SettingsError(
            f"The output {output} {what} the input folder: name another with `--set output=FOLDER`."
        )


def find_files(
    settings: LoadDocuments,
    root: Path,
    *,
    may_be_empty: bool = False,
    ignored: Counter[str] | None = None,
) -> list[InputFile]:
    """Find the files to read, ordered by name.

    Files of other types, hidden files, and indexes, evaluations and proposals of this program
    are skipped; `ignored` gets the number of files of each other type. Links are followed, except
    a link to a folder that contains the link. Raises InputError if there is no file to read,
    unless `may_be_empty`.
    """
    folder = input_folder(settings, root)
    if may_be_empty and not folder.exists():
        return []
    if not folder.is_dir():
        what = "is a file, not a folder" if folder.exists() else "does not exist"
        raise InputError(
            f"The input folder {folder} {what}: put your documents there, "
            "or name their folder in load_documents.folder."
        )
    included = [translate_glob(pattern) for pattern in settings.include]
    excluded = [translate_glob(pattern) for pattern in settings.exclude]
    # Report an unsupported file type only if a pattern of `include` names the type.
    asked = tuple(PurePosixPath(pattern).suffix.lower() for pattern in settings.include)
    types = ", ".join(READERS)
    files: list[tuple[str, InputFile]] = []
    ignored = Counter() if ignored is None else ignored
    n_seen = 0
    for name, path, problem in _walk_files(folder, excluded):
        n_seen += 1
        suffix = path.suffix.lower()
        if not problem:
            if not any(pattern.fullmatch(name) for pattern in included):
                continue
            if suffix not in READERS:
                if not suffix or suffix not in asked:
                    ignored[suffix or "files without a suffix"] += 1
                    continue
                problem = f"is of a type that is not read; the types are {types}"
        files.append((name, _inspect_file(name, path, problem)))
    if files or may_be_empty:
        return [file for _, file in sorted(files)]
    if not n_seen and not settings.exclude:
        raise InputError(
            f"The input folder {folder} is empty: put documents there ({types}), or name their "
            "folder in load_documents.folder."
        )
    if ignored:
        raise InputError(
            f"The input folder {name_input(settings, root)} has no file of a type that is read "
            f"({types}), only {join_names(sorted(ignored))}."
        )
    raise InputError(
        f"No file in the input folder {name_input(settings, root)} matches load_documents.include "
        f"({join_names(settings.include)}) and not load_documents.exclude: change the patterns."
    )


def _walk_files(folder: Path, excluded: list[re.Pattern[str]]) -> Iterator[tuple[str, Path, str]]:
    """Yield (name with /, path, problem) for every file below a folder.

    The problem is "" for a file without a problem. A folder that cannot be listed is yielded
    like a file, with its problem.
    """
    # Folders to list: (path, name, real paths of the folder and its parents).
    waiting = [(folder, "", frozenset([os.path.realpath(folder)]))]
    while waiting:
        subfolder, prefix, ancestors = waiting.pop()
        try:
            with os.scandir(subfolder) as entries:
                children = list(entries)
        except OSError as error:
            if not prefix:
                raise InputError(
                    f"The input folder {folder} cannot be listed: {describe_os_error(error)}."
                ) from error
            yield prefix.rstrip("/"), subfolder, f"cannot be listed: {describe_os_error(error)}"
            continue
        # Skip what this program has written, but never the input folder itself.
        names = {entry.name for entry in children}
        is_written = names >= REPORT_FILES or names >= PROPOSAL_FILES
        if prefix and (is_written or _is_index_folder(subfolder, names)):
            continue
        for entry in children:
            name = prefix + entry.name
            # Skip hidden files, and the lock files ~$name of office programs.
            if entry.name.startswith((".", "~$")) or any(
                pattern.fullmatch(name) for pattern in excluded
            ):
                continue
            path = subfolder / entry.name
            if not os.path.isdir(path):
                yield name, path, ""
            elif (real := os.path.realpath(path)) not in ancestors:
                waiting.append((path, name + "/", ancestors | {real}))


def _is_index_folder(folder: Path, names: set[str]) -> bool:
    """Return whether a folder is the output of a finished or interrupted run."""
    if "versions" not in names:
        return False
    try:
        if INDEX_FILE in names and _INDEX_FILE_START.match((folder / INDEX_FILE).read_bytes()):
            return True
        return any(
            path.parent.name.isdecimal() and _TABLE_FILE_NAME.fullmatch(path.name)
            for path in folder.glob("versions/*/*.parquet")
        )
    except OSError:
        return False


def _inspect_file(name: str, path: Path, problem: str) -> InputFile:
    # In names that are not valid Unicode, replace the invalid bytes.
    shown = os.fsencode(name).decode("utf-8", "replace")
    if problem:
        return InputFile(shown, path, problem=problem)
    try:
        status = path.stat()
    except OSError as error:
        return InputFile(shown, path, problem=f"cannot be read: {describe_os_error(error)}")
    if not S_ISREG(status.st_mode):
        return InputFile(shown, path, problem="is not a regular file")
    return InputFile(shown, path, size=status.st_size)

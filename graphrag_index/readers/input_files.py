"""Search for the files of the input folder."""

import os
import re
from collections.abc import Collection, Iterator
from itertools import islice
from pathlib import Path
from stat import S_ISREG
from typing import NamedTuple

from graphrag_index.errors import InputError, SettingsError, join_names
from graphrag_index.readers import (
    IS_HIDDEN,
    READERS,
    READERS_OF_MEMBERS,
    copy_members,
    describe_os_error,
    find_suffix,
    find_type,
)
from graphrag_index.readers.parse_process import PICTURE_SUFFIXES
from graphrag_index.schema.settings.step_sections import LoadDocuments
from graphrag_index.storage.bucket import Bucket, fetch_folder, is_bucket
from graphrag_index.storage.skipped_files import SkippedFile, describe_skipped
from graphrag_index.storage.versions import INDEX_FILE
from graphrag_index.storage.working_copy import LOCK_FILE
from graphrag_nlp.text.normalize import translate_glob

# Folder below the input folder that holds the files that the server stores.
UPLOAD_FOLDER = "uploads"
# Types of files that a message names.
MAX_NAMED_TYPES = 16
# Files of the report of an evaluation, and of a proposal of `graphrag-index tune`.
REPORT_FILES, PROPOSAL_FILES = {"evaluation.json", "evaluation.html"}, {"prompts", "changes.diff"}
# Files and folders of a project, which may be in its input folder.
_PROJECT_FILES = {"settings.yaml", "prompts", "workflows", "resolutions.yaml"}
# Beginning of an `index.json` file; `move_pointer` writes it.
_INDEX_FILE_START = re.compile(rb'\{\s*"format": \d+,\s*"version": \d+,\s*"workflow": "')
# Name of a table file, which an interrupted run leaves without an `index.json`.
_TABLE_FILE_NAME = re.compile(r"\w+-[0-9a-f]{12}\.parquet")


# Types of files that have pages that are pictures, and of those that have figures.
SCAN_SUFFIXES = (".pdf", *PICTURE_SUFFIXES)
FIGURE_SUFFIXES = (".pptx", *SCAN_SUFFIXES)
HIDDEN, EXCLUDED = "hidden", "excluded"
_OUTSIDE_LINK = "is a link out of the input folder: load_documents.follow_links_outside reads it"


class InputFile(NamedTuple):
    """A file to read, or a file or folder that cannot be read because of `problem`."""

    name: str  # path relative to the input folder, with /
    path: Path
    size: int = 0
    problem: str = ""
    type: str = ""  # key of its reader in READERS


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
    skipped: list[SkippedFile] | None = None,
) -> list[InputFile]:
    """Find the files to read, ordered by name.

    `skipped` gets all other files: those without text, hidden and excluded ones, links out of
    the folder or to a folder that contains the link. Of indexes, evaluations and proposals of
    this program, it gets nothing. Raises InputError if there is no file to read, unless
    `may_be_empty`.
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
    types = ", ".join([*islice(READERS, MAX_NAMED_TYPES), "e-mail, archives and others"])
    found = list(_walk_files(folder, root, settings))
    files = sorted(file for file in found if isinstance(file, InputFile))
    skipped = [] if skipped is None else skipped
    skipped += sorted(file for file in found if isinstance(file, SkippedFile))
    if files or may_be_empty:
        return files
    kinds = {one.kind for one in skipped}
    if not kinds - {HIDDEN}:
        raise InputError(
            f"The input folder {folder} is empty: put documents there ({types}), or name their "
            "folder in load_documents.folder."
        )
    place = name_input(settings, root)
    if kinds - {HIDDEN, EXCLUDED}:
        raise InputError(
            f"The input folder {place} has no file of a type that is read ({types}, or text): "
            f"{describe_skipped(skipped)}"
        )
    raise InputError(
        f"No file in the input folder {place} matches load_documents.include "
        f"({join_names(settings.include)}) and not load_documents.exclude: change the patterns."
    )


def find_figure_files(settings: LoadDocuments, root: Path) -> list[InputFile]:
    """Return the files with figures of the input folder, and those that may hold such files."""
    return [
        file
        for file in find_files(settings, root, may_be_empty=True)
        if file.type in FIGURE_SUFFIXES or READERS.get(file.type) in READERS_OF_MEMBERS
    ]


def open_figure_files(settings: LoadDocuments, root: Path, folder: Path) -> dict[str, InputFile]:
    """Return the files with figures of the input folder by name, in the order of the names.

    Those in archives and messages are copied to a folder; of two of one name there, the last.
    """
    return {
        name: InputFile(name, path, type=find_type(path).suffix)
        for file in find_figure_files(settings, root)
        for name, path in open_inside(file, settings, FIGURE_SUFFIXES, folder)
    }


def open_inside(
    file: InputFile, settings: LoadDocuments, suffixes: Collection[str], folder: Path
) -> Iterator[tuple[str, Path]]:
    """Yield the name and the path of a file of some types, or of copies of those in it."""
    if file.problem:
        return
    if file.type in suffixes:
        yield file.name, file.path
    elif READERS.get(file.type) in READERS_OF_MEMBERS:
        yield from copy_members(file.path, file.name, settings, suffixes, folder)


def _walk_files(
    folder: Path, root: Path, settings: LoadDocuments
) -> Iterator[InputFile | SkippedFile]:
    """Yield every file below a folder, to read or skipped.

    A folder that cannot be listed, or is hidden or excluded, is yielded like a file.
    """
    included = [translate_glob(pattern) for pattern in settings.include]
    excluded = [translate_glob(pattern) for pattern in settings.exclude]
    is_closed = not settings.follow_links_outside
    input_path, project = os.path.realpath(folder), os.path.realpath(root)
    # Folders to list: (path, name, real paths of the folder and its parents).
    waiting = [(folder, "", frozenset([input_path]))]
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
            why = f"cannot be listed: {describe_os_error(error)}"
            yield InputFile(_show(prefix.rstrip("/")), subfolder, problem=why)
            continue
        # Skip what this program has written, but never the input folder itself.
        names = {entry.name for entry in children}
        is_written = names >= REPORT_FILES or (
            names >= PROPOSAL_FILES and (subfolder / "prompts").is_dir()
        )
        is_written &= prefix != f"{UPLOAD_FOLDER}/"
        if prefix and (is_written or _is_index_folder(subfolder, names)):
            continue
        is_project = os.path.realpath(subfolder) == project
        for entry in children:
            if is_project and entry.name in _PROJECT_FILES:
                continue
            path, name = subfolder / entry.name, prefix + entry.name
            shown, is_folder = _show(name), path.is_dir()
            real = os.path.realpath(path) if is_folder or entry.is_symlink() else input_path
            # Skip the lock files ~$name of office programs like hidden files.
            if entry.name.startswith((".", "~$")):
                yield SkippedFile(shown, HIDDEN, IS_HIDDEN, _count_files(path))
            elif any(pattern.fullmatch(name) for pattern in excluded):
                why = "matches load_documents.exclude"
                yield SkippedFile(shown, EXCLUDED, why, _count_files(path))
            elif is_closed and not Path(real).is_relative_to(input_path) and path.exists():
                yield SkippedFile(shown, "outside links", _OUTSIDE_LINK)
            elif is_folder and real in ancestors:
                yield SkippedFile(shown, "circular links", "is a link to a folder that holds it")
            elif is_folder:
                waiting.append((path, name + "/", ancestors | {real}))
            elif any(pattern.fullmatch(name) for pattern in included):
                yield _inspect_file(shown, path)
            else:
                yield SkippedFile(shown, EXCLUDED, "matches no pattern of load_documents.include")


def _show(name: str) -> str:
    """Return a name with its bytes that are not valid Unicode replaced."""
    return os.fsencode(name).decode("utf-8", "replace")


def _count_files(path: Path) -> int:
    if path.is_symlink() or not path.is_dir():
        return 1
    return sum(len(files) for _, _, files in os.walk(path))


def _inspect_file(name: str, path: Path) -> InputFile | SkippedFile:
    try:
        status = path.stat()
        if S_ISREG(status.st_mode):
            suffix, noun = find_type(path)
            if suffix:
                return InputFile(name, path, status.st_size, type=suffix)
            return SkippedFile(name, path.suffix.lower() or "no suffix", f"is {noun}")
    except OSError as error:
        return InputFile(name, path, problem=f"cannot be read: {describe_os_error(error)}")
    if find_suffix(path) in READERS:
        return InputFile(name, path, problem="is not a regular file")
    return SkippedFile(name, "special files", "is not a regular file")


def _is_index_folder(folder: Path, names: set[str]) -> bool:
    """Return whether a folder is the output of a finished, interrupted or beginning run."""
    if "versions" not in names:
        return names == {LOCK_FILE}
    try:
        if INDEX_FILE in names and _INDEX_FILE_START.match((folder / INDEX_FILE).read_bytes()):
            return True
        return any(
            path.parent.name.isdecimal() and _TABLE_FILE_NAME.fullmatch(path.name)
            for path in folder.glob("versions/*/*.parquet")
        )
    except OSError:
        return False

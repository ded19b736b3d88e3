"""Read the documents of the input folder."""

import logging
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from hashlib import blake2b, file_digest
from pathlib import Path, PurePosixPath
from stat import S_ISREG
from typing import NamedTuple

import polars as pl

from graphrag_index.errors import InputError, SettingsError
from graphrag_index.microsoft.import_folder import has_imported
from graphrag_index.readers import READERS, Document, Unread, read_file, system_reason
from graphrag_index.readers.document import MISSING, field, listed
from graphrag_index.readers.pdf_and_office import office_version, read_office
from graphrag_index.schema.settings.embedded_steps import LoadDocuments
from graphrag_index.schema.tables import TABLES, content_id
from graphrag_index.step import Progress, Project, step
from graphrag_index.storage.table_store import INDEX_FILE

logger = logging.getLogger(__name__)

# Characters of text and raw data held before they are written.
BATCH_CHARACTERS = 8_000_000
# How an index begins, as `TableStore.move_pointer` writes it; and what a run leaves that was
# stopped before it had one.
_POINTER = re.compile(rb'\{\s*"format": \d+,\s*"version": \d+,\s*"workflow": "')
# Names of fields that are kept for a warning.
_MOST_FIELDS = 50
_STORED_TABLE = re.compile(r"\w+-[0-9a-f]{12}\.parquet")


class InputFile(NamedTuple):
    """A file to read; or a file or folder that cannot be read, with the problem."""

    name: str  # below the input folder, with /
    path: Path
    size: int = 0
    problem: str = ""


def fingerprint_input(settings: LoadDocuments, root: Path) -> str:
    """Hash the names and the content of the files that would be read.

    Raises
    ------
    InputError
        There is nothing to read.
    """
    whole = blake2b(digest_size=16)
    files = find_files(settings, root, may_be_empty=has_imported(root))
    for file in files:
        content = file.problem
        if not content:
            try:
                with file.path.open("rb") as stream:
                    content = file_digest(stream, partial(blake2b, digest_size=16)).hexdigest()
            except OSError as error:
                content = system_reason(error)
        whole.update(content_id(file.name, content).encode("ascii"))
    # Installing the extra makes files readable that were not.
    if any(READERS.get(file.path.suffix.lower()) is read_office for file in files):
        whole.update(office_version().encode("utf-8"))
    return whole.hexdigest()


def check_input(settings: LoadDocuments, project: Project) -> None:
    """Check that there are documents, and that the output does not replace them.

    Raises
    ------
    SettingsError
        The output is the input folder, or contains it.
    InputError
        There is nothing to read, and no imported index that a workflow could update.
    """
    check_output(settings, project.root, project.output)
    updates_imported = "skip_imported" in project.steps and has_imported(project.root)
    find_files(settings, project.root, may_be_empty=updates_imported)


@step(
    writes=["loaded_documents", "unread_files"],
    code_version=2,
    fingerprint=fingerprint_input,
    check=check_input,
)
def load_documents(
    *, settings: LoadDocuments, root: Path, progress: Progress
) -> Iterator[Mapping[str, pl.DataFrame]]:
    """Read every document of the input folder, file by file and record by record.

    The id of a document is a hash of its text, so it survives the renaming of its
    file; of documents with equal text each has its own. With `id_column` the id is
    what the record states.

    Yields
    ------
    loaded_documents, unread_files
        Batches of documents in the order of their paths, then of their places in
        the file; and the files and records that could not be read, each with its reason.

    Raises
    ------
    InputError
        There is no folder, no file to read in it, or none that can be read.
    """
    files = find_files(settings, root, may_be_empty=has_imported(root))
    progress.start(sum(file.size for file in files), "bytes")
    identify = _Identities()
    columns = _Columns(settings)
    documents: list[tuple[str | None, ...]] = []
    unread: list[tuple[str, str]] = []
    n_documents = n_characters = 0
    first_problem = ""
    for file in files:
        left = file.size
        for item in map(identify, _read(file, settings)):
            if isinstance(item, Unread):
                unread.append((file.name, item.reason))
                first_problem = first_problem or f"{file.name}: {item.reason}"
                n_characters += len(item.reason)
            else:
                columns.see(item)
                documents.append(
                    (
                        *(item.id, item.title, item.text, item.creation_date, item.raw_data),
                        *(file.name, item.metadata),
                    )
                )
                n_documents += 1
                n_characters += len(item.text) + len(item.raw_data or "")
                # How far a reader has come in its file shows in what it has given.
                done = min(left, len(item.raw_data or item.text))
                left -= done
                progress.advance(done)
            if n_characters >= BATCH_CHARACTERS:
                yield _frames(documents, unread)
                documents, unread, n_characters = [], [], 0
        progress.advance(left)
    if files and not n_documents:
        folder = input_folder(settings, root)
        raise InputError(
            f"None of the {len(files):,} files in {folder} could be read; "
            f"mend or replace them: the first: {first_problem}."
            if len(files) > 1
            else f"The only file in {folder} could not be read; "
            f"mend or replace it: {first_problem}."
        )
    columns.warn()
    if documents or unread:
        yield _frames(documents, unread)


class _Columns:
    """Finds out which of the columns that the settings name are in no record.

    Those of the defaults need not be there, and a missing text or id is told of
    each record.
    """

    def __init__(self, settings: LoadDocuments) -> None:
        named: dict[str, list[str | None] | list[str]] = {
            "title_column": [settings.title_column],
            "date_column": [settings.date_column],
            "metadata_columns": settings.metadata_columns,
        }
        self.unseen = {
            setting: dict.fromkeys(column for column in columns if column is not None)
            for setting, columns in named.items()
            if getattr(settings, setting) != LoadDocuments.model_fields[setting].default
        }
        self.fields: dict[str, None] = {}

    def see(self, document: Document) -> None:
        record = document.record
        if record is None or not any(self.unseen.values()):
            return
        for columns in self.unseen.values():
            for column in [column for column in columns if field(record, column) is not MISSING]:
                del columns[column]
        # Records of many names, such as those keyed by a date, show what is meant early.
        if len(self.fields) < _MOST_FIELDS:
            self.fields.update(dict.fromkeys(record))

    def warn(self) -> None:
        for setting, columns in self.unseen.items():
            if columns:
                there = (
                    f"their fields are {listed(self.fields, 12)}"
                    if self.fields
                    else "there is none"
                )
                logger.warning(
                    "load_documents.%s: no record and no front matter has %s; %s.",
                    *(setting, " or ".join(map(repr, columns)), there),
                )


class _Identities:
    """Gives each document its id; a record that repeats the id of another is not read.

    Remembers a digest of 16 bytes a document.
    """

    def __init__(self) -> None:
        self.seen: set[bytes] = set()
        self.repeats: dict[bytes, int] = {}

    def __call__(self, item: Document | Unread) -> Document | Unread:
        if isinstance(item, Unread):
            return item
        identity = item.id
        if identity is None:
            identity = content_id("document", item.text, "0")
            key = bytes.fromhex(identity)
            if key in self.seen:
                # How many documents before it have this text.
                self.repeats[key] = self.repeats.get(key, 0) + 1
                identity = content_id("document", item.text, str(self.repeats[key]))
        else:
            key = blake2b(identity.encode("utf-8"), digest_size=16).digest()
            if key in self.seen:
                return Unread(f"{item.place} repeats the id {identity!r} of an earlier record")
        self.seen.add(key)
        return replace(item, id=identity)


def _read(file: InputFile, settings: LoadDocuments) -> Iterator[Document | Unread]:
    if file.problem:
        return iter([Unread(file.problem)])
    return read_file(file.path, file.name, settings)


def _frames(
    documents: Sequence[tuple[str | None, ...]], unread: Sequence[tuple[str, str]]
) -> dict[str, pl.DataFrame]:
    rows = {"loaded_documents": documents, "unread_files": unread}
    return {
        name: pl.DataFrame(values, schema=TABLES[name].schema, orient="row")
        for name, values in rows.items()
    }


def input_folder(settings: LoadDocuments, root: Path) -> Path:
    return root / Path(settings.folder).expanduser()


def check_output(settings: LoadDocuments, root: Path, output: Path) -> None:
    """See that the index is not written where the documents lie, or around them.

    Below them it may lie: there it is passed over.

    Raises
    ------
    SettingsError
        The output is the input folder, or holds it.
    """
    folder, output = (
        Path(os.path.realpath(path)) for path in (input_folder(settings, root), output)
    )
    places = [folder, *folder.parents]
    # Two names may be one folder where capitals do not count.
    if output in places or any(map(partial(_is_same, output), places)):
        what = "is" if output == folder else "holds"
        raise SettingsError(
            f"The output {output} {what} the input folder: name another with `--set output=FOLDER`."
        )


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


def find_files(
    settings: LoadDocuments, root: Path, *, may_be_empty: bool = False
) -> list[InputFile]:
    """Find the files to read, in the order of their names by code point.

    Files of other types, hidden ones and indexes that this program wrote below the
    folder are passed over. Links are followed, but never into a folder that they lie in.
    `may_be_empty` a project is into which an index was imported: it has documents without.

    Raises
    ------
    InputError
        There is no folder, or no file to read in it.
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
    included = [_glob(pattern) for pattern in settings.include]
    excluded = [_glob(pattern) for pattern in settings.exclude]
    # A type that is not read is an error only where a pattern names it.
    asked = tuple(PurePosixPath(pattern).suffix.lower() for pattern in settings.include)
    files: list[tuple[str, InputFile]] = []
    ignored: set[str] = set()
    n_seen = 0
    for name, path, problem in _walk(folder, excluded):
        n_seen += 1
        suffix = path.suffix.lower()
        if not problem:
            if not any(pattern.fullmatch(name) for pattern in included):
                continue
            if suffix not in READERS:
                if not suffix or suffix not in asked:
                    ignored.add(suffix or "files without a suffix")
                    continue
                problem = f"is of a type that is not read; read are {', '.join(READERS)}"
        files.append((name, _inspect(name, path, problem)))
    if files:
        return [file for _, file in sorted(files)]
    if may_be_empty:
        return []
    if not n_seen and not settings.exclude:
        raise InputError(
            f"The input folder {folder} is empty: put documents there ({', '.join(READERS)}), "
            "or name their folder in load_documents.folder."
        )
    if ignored:
        raise InputError(
            f"The input folder {folder} has no file of a type that is read "
            f"({', '.join(READERS)}), only {listed(sorted(ignored))}."
        )
    raise InputError(
        f"No file in the input folder {folder} matches load_documents.include "
        f"({listed(settings.include)}) and not load_documents.exclude: change the patterns."
    )


def _walk(folder: Path, excluded: list[re.Pattern[str]]) -> Iterator[tuple[str, Path, str]]:
    """Yield every file below a folder: its name with /, its path, and what is wrong with it.

    A folder that cannot be listed comes as a file with a problem.
    """
    # Folders to list, each with its name and the folders that it lies in.
    waiting = [(folder, "", frozenset([os.path.realpath(folder)]))]
    while waiting:
        place, prefix, around = waiting.pop()
        try:
            with os.scandir(place) as entries:
                children = list(entries)
        except OSError as error:
            if not prefix:
                raise InputError(
                    f"The input folder {folder} cannot be listed: {system_reason(error)}."
                ) from error
            yield prefix.rstrip("/"), place, f"cannot be listed: {system_reason(error)}"
            continue
        # The folder itself is what the user asks for, whatever lies in it.
        if prefix and _is_index(place, {entry.name for entry in children}):
            continue
        for entry in children:
            name = prefix + entry.name
            # Office programs keep such a file beside each that is open.
            if entry.name.startswith((".", "~$")) or any(
                pattern.fullmatch(name) for pattern in excluded
            ):
                continue
            path = place / entry.name
            try:
                is_folder = entry.is_dir()
            except OSError:
                is_folder = False
            if not is_folder:
                yield name, path, ""
                continue
            real = os.path.realpath(path)
            if real not in around:
                waiting.append((path, name + "/", around | {real}))


def _is_index(folder: Path, names: set[str]) -> bool:
    """Tell whether a folder is the output of a run, which is no input even if it lies there.

    A run may have been stopped before it wrote an index: then its tables tell.
    """
    if "versions" not in names:
        return False
    try:
        if INDEX_FILE in names:
            with (folder / INDEX_FILE).open("rb") as stream:
                if _POINTER.match(stream.read(256)):
                    return True
        return any(
            path.parent.name.isdecimal() and _STORED_TABLE.fullmatch(path.name)
            for path in folder.glob("versions/*/*.parquet")
        )
    except OSError:
        return False


def _inspect(name: str, path: Path, problem: str) -> InputFile:
    # Names that are not valid Unicode are read all the same, and shown as well as can be.
    shown = os.fsencode(name).decode("utf-8", "replace")
    if problem:
        return InputFile(shown, path, problem=problem)
    try:
        status = path.stat()
    except OSError as error:
        return InputFile(shown, path, problem=f"cannot be read: {system_reason(error)}")
    if not S_ISREG(status.st_mode):
        return InputFile(shown, path, problem="is not a regular file")
    return InputFile(shown, path, size=status.st_size)


def _glob(pattern: str) -> re.Pattern[str]:
    """Translate a glob pattern.

    ``*``, ``?``, ``[abc]``, ``[a-c]`` and ``[!abc]`` stand for characters of a name,
    ``**`` for any folders.
    """
    wildcards = {"**/": "(?:[^/]+/)*", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    # A bracket that is not closed within its name is a bracket.
    parts = re.split(
        r"(\*\*/|\*\*|\*|\?|\[!?[^/][^]/]*\])", pattern.replace("\\", "/").removeprefix("./")
    )
    expression = "".join(
        wildcards.get(part) or (_one_of(part) if index % 2 else re.escape(part))
        for index, part in enumerate(parts)
    )
    # A pattern that ends with / means all below that folder.
    return re.compile(expression + (".*" if pattern.endswith("/") else ""), re.DOTALL)


def _one_of(bracket: str) -> str:
    """Translate a character class as `fnmatch` reads it; an empty range matches nothing."""
    inverse = bracket.startswith("[!")
    members = ""
    for item in re.findall(r".-.|.", bracket[1 + inverse : -1], re.DOTALL):
        if len(item) == 1:
            members += re.escape(item)
        elif item[0] <= item[2]:
            members += f"{re.escape(item[0])}-{re.escape(item[2])}"
    if inverse:
        return f"[^/{members}]"
    return f"(?!/)[{members}]" if members else "(?!)"

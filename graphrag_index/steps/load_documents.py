"""Reading of the documents in the input folder."""

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, replace
from hashlib import blake2b
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from graphrag_index.errors import InputError, join_names
from graphrag_index.microsoft.import_folder import has_imported
from graphrag_index.readers import (
    IS_HIDDEN,
    READERS,
    READERS_OF_MEMBERS,
    Document,
    ReadFailure,
    describe_os_error,
    read_file,
)
from graphrag_index.readers.document import MISSING, PageText, get_field
from graphrag_index.readers.input_files import HIDDEN, check_output_folder, find_files, name_input
from graphrag_index.readers.parse_process import PICTURE_SUFFIXES
from graphrag_index.readers.recognition import PageReader, describe_engine
from graphrag_index.readers.text_html_pdf_office import get_parser_versions, read_office
from graphrag_index.schema.settings.step_sections import LoadDocuments
from graphrag_index.schema.tables import TABLES, content_id, derive_document_id
from graphrag_index.step import Progress, Project, step
from graphrag_index.storage.atomic import digest_file
from graphrag_index.storage.skipped_files import IN_PART, SkippedFile
from graphrag_nlp.list_columns import gather_lists

if TYPE_CHECKING:
    from graphrag_index.llm.ledger import Ledger

logger = logging.getLogger(__name__)

# Number of characters of text and raw data per batch.
BATCH_CHARACTERS = 8_000_000
# Readers of files that an optional package parses, or that may hold such files.
_READERS_WITH_PARSERS = (read_office, *READERS_OF_MEMBERS)
# Maximum number of field names that are collected for a warning.
_MAX_COLLECTED_FIELDS = 50


def fingerprint_input(settings: LoadDocuments, root: Path) -> str:
    """Hash the names and the content of the input files, and the names of skipped files."""
    whole = blake2b(digest_size=16)
    skipped: list[SkippedFile] = []
    files = find_files(settings, root, may_be_empty=has_imported(root), skipped=skipped)
    for one in skipped:
        whole.update(content_id(one.path, f"{one.reason} {one.n_files}").encode("ascii"))
    for file in files:
        try:
            content = file.problem or digest_file(file.path)
        except OSError as error:
            content = describe_os_error(error)
        whole.update(content_id(file.name, content).encode("ascii"))
    # Hash the versions of the optional parsers, because another version may read other texts.
    if any(READERS.get(file.type) in _READERS_WITH_PARSERS for file in files):
        whole.update(f"{get_parser_versions()} {describe_engine()}".encode())
    return whole.hexdigest()


def check_input(settings: LoadDocuments, project: Project) -> None:
    """Check that the input has documents, and that the output does not overwrite the input.

    The input may be empty if the workflow updates an imported index.
    """
    check_output_folder(settings, project.root, project.output)
    updates_imported = "skip_imported" in project.steps and has_imported(project.root)
    find_files(settings, project.root, may_be_empty=updates_imported)


@step(
    writes=["loaded_documents", "loaded_pages", "unread_files", "skipped_files"],
    code_version=9,
    fingerprint=fingerprint_input,
    check=check_input,
    input_table="loaded_documents",
)
def load_documents(
    *,
    settings: LoadDocuments,
    root: Path,
    progress: Progress,
    page_reader: PageReader | None = None,
    describes_figures: bool = False,
) -> Iterator[Mapping[str, pl.DataFrame]]:
    """Read all documents of the input folder, file by file and record by record.

    The id of a document is a hash of its text, and of a number if several texts are equal. So the
    id does not change when the file is renamed. With `id_column`, the id is a field of the record.
    Documents are ordered by path, then by position in the file. `loaded_pages` has the pages of
    those with pages. `unread_files` has one row per file or record that could not be read, with the
    reason, and `skipped_files` one per file without anything to read. So every file of the folder
    is in one of these three tables; a file that was read in part is in `skipped_files` too.
    """
    skipped: list[SkippedFile] = []
    files = find_files(settings, root, may_be_empty=has_imported(root), skipped=skipped)
    reader = page_reader or PageReader(open_ledger_in_memory)
    reader.read(files, settings, progress)
    progress.start(sum(file.size for file in files), "bytes")
    own_ids: set[bytes] = set()
    n_of_text: Counter[bytes] = Counter()
    columns = _MissingColumns(settings)
    documents: list[tuple[str | None, ...]] = []
    pages: list[tuple[str, PageText]] = []
    unread: list[tuple[str, str]] = []
    n_documents = n_characters = 0
    first_problem = ""
    for file in files:
        left = file.size
        unreadable = [ReadFailure(file.problem)] if file.problem else None
        for item in unreadable or read_file(file.path, file.name, settings, reader.find_reader):
            path = f"{file.name}/{item.member}" if item.member else file.name
            unread_pages = reader.explain(path)
            if isinstance(item, Document):
                item = _set_id(item, own_ids, n_of_text)
                if unread_pages:
                    skipped.append(SkippedFile(path, IN_PART, unread_pages, 0))
            elif unread_pages:
                item = replace(item, reason=unread_pages)
            if isinstance(item, ReadFailure):
                first_problem = first_problem or f"{path}: {item.reason}"
                if item.is_skipped:
                    kind = PurePosixPath(path).suffix.lower() or "no suffix"
                    kind = HIDDEN if item.reason == IS_HIDDEN else kind
                    skipped.append(SkippedFile(path, kind, item.reason))
                    continue
                unread.append((path, item.reason))
                n_characters += len(item.reason)
            else:
                columns.check_record(item)
                values = (item.id, item.title, item.text, item.creation_date, item.raw_data)
                documents.append((*values, path, item.metadata))
                pages += [(str(item.id), page) for page in item.pages]
                n_documents += 1
                n_characters += len(item.text) + len(item.raw_data or "")
                # Report the length of the document as progress: it approximates the bytes read.
                done = min(left, len(item.raw_data or item.text))
                left -= done
                progress.advance(done)
            if n_characters >= BATCH_CHARACTERS:
                yield _make_batch_tables(documents, pages, unread)
                documents, pages, unread, n_characters = [], [], [], 0
        progress.advance(left)
    has_pictures = describes_figures and any(one.kind in PICTURE_SUFFIXES for one in skipped)
    if files and not n_documents and not has_pictures:
        where = f"in {name_input(settings, root)} could"
        raise InputError(
            f"None of the {len(files):,} files {where} be read; "
            f"repair or replace them. The first: {first_problem}."
            if len(files) > 1
            else f"The only file {where} not be read; repair or replace it: {first_problem}."
        )
    columns.log_warnings()
    if documents or unread or skipped:
        yield _make_batch_tables(documents, pages, unread, sorted(skipped))


def open_ledger_in_memory() -> "Ledger":
    from graphrag_index.llm.ledger import Ledger

    return Ledger(None)


class _MissingColumns:
    """Columns that are named in the settings but missing in all records read so far.

    Default columns may be missing without a warning. A missing text or id is reported for each
    record elsewhere.
    """

    def __init__(self, settings: LoadDocuments) -> None:
        names = {"title_column", "date_column", "metadata_columns"}
        named = settings.model_dump(include=names, exclude_defaults=True)
        self.unseen: dict[str, list[str]] = {
            setting: [columns] if isinstance(columns, str) else list(columns or ())
            for setting, columns in named.items()
        }
        self.fields: dict[str, None] = {}

    def check_record(self, document: Document) -> None:
        record = document.record
        if record is None or not any(self.unseen.values()):
            return
        for columns in self.unseen.values():
            columns[:] = [column for column in columns if get_field(record, column) is MISSING]
        # A record may have thousands of fields, for example one field per date.
        if len(self.fields) < _MAX_COLLECTED_FIELDS:
            self.fields.update(dict.fromkeys(record))

    def log_warnings(self) -> None:
        present = (
            f"their fields are {join_names(self.fields, 12)}"
            if self.fields
            else "there is no field"
        )
        text = "load_documents.%s: no record and no front matter has %s; %s."
        for setting, columns in self.unseen.items():
            if columns:
                logger.warning(text, setting, " or ".join(map(repr, columns)), present)


def _set_id(
    document: Document, own_ids: set[bytes], n_of_text: Counter[bytes]
) -> Document | ReadFailure:
    """Return the document with an id; a failure if an earlier record has the id of its record."""
    if document.id is None:
        key, derived = derive_document_id(document.text, n_of_text)
        n_of_text[key] += 1
        return replace(document, id=derived)
    key = blake2b(document.id.encode("utf-8"), digest_size=16).digest()
    if key in own_ids:
        return ReadFailure(f"{document.place} repeats the id {document.id!r} of an earlier record")
    own_ids.add(key)
    return document


def _make_batch_tables(
    documents: Sequence[tuple[str | None, ...]],
    pages: Sequence[tuple[str, PageText]],
    unread: Sequence[tuple[str, str]],
    skipped: Sequence[SkippedFile] = (),
) -> dict[str, pl.DataFrame]:
    skips = list(map(astuple, skipped))
    rows = {"loaded_documents": documents, "unread_files": unread, "skipped_files": skips}
    tables = {
        name: pl.DataFrame(values, schema=TABLES[name].schema, orient="row")
        for name, values in rows.items()
    }
    return tables if not pages else {**tables, "loaded_pages": _make_page_rows(pages)}


def _make_page_rows(pages: Sequence[tuple[str, PageText]]) -> pl.DataFrame:
    words = {at: page.word_boxes for at, (_, page) in enumerate(pages) if page.boxes}
    of_page = np.repeat([*words], [*map(len, words.values())]).astype(np.int64)
    sides = ("start_char", "end_char", "left", "top", "width", "height")
    places = np.concatenate([np.zeros((0, 6)), *words.values()])
    boxes = pl.DataFrame(places.astype(np.int32), sides).to_struct()
    table = TABLES["loaded_pages"]
    names = [name.removesuffix("_char") for name in table.columns if name != "boxes"][1:]
    rows = [(id, *(getattr(page, name) for name in names)) for id, page in pages]
    schema = {name: dtype for name, dtype in table.columns.items() if name != "boxes"}
    found = pl.DataFrame(rows, schema, orient="row")
    return found.with_columns(boxes=gather_lists(of_page, boxes, len(pages))).select(*table.columns)

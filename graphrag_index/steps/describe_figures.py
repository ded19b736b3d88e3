"""Description of figures by a model that sees pictures."""

import logging
import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

import polars as pl

from graphrag_index.errors import InputError, join_counts
from graphrag_index.extraction.graph_reply import clean_line
from graphrag_index.llm.chat_model import ChatModel
from graphrag_index.llm.prompts import Prompts, quote_text
from graphrag_index.llm.request import Message, Picture, Request, pair_outcomes
from graphrag_index.readers.document import UnreadableFile
from graphrag_index.readers.figures import FIGURE_NAME, Figure, is_caption, name_place
from graphrag_index.readers.input_files import InputFile
from graphrag_index.readers.parse_process import PICTURE_SUFFIXES, call_parser
from graphrag_index.schema.settings.step_sections import DescribeFigures
from graphrag_index.schema.tables import TABLES, content_id
from graphrag_index.step import Progress, step
from graphrag_index.steps.summarize_descriptions import SUMMARY_FORMAT
from graphrag_index.storage.atomic import digest_file
from graphrag_index.storage.memo import make_reply_rows, read_batches, reuse_rows
from graphrag_index.storage.table_store import Previous
from graphrag_nlp.text.sentences import split_sentences

logger = logging.getLogger(__name__)

TABLE = TABLES["described_figures"]
# Maximum numbers of characters of a caption, and of the text beside it in a request.
MAX_CAPTION_CHARS, MAX_CONTEXT_CHARS = 600, 1_500
# Numbers of rows per batch. They limit memory and do not change the results.
BATCH_DOCUMENTS, BATCH_PAGES = 256, 4_096
_PARAGRAPH_START = re.compile(r"(?:^|\n)[\s#*>_]*$")
FIGURE_FORMAT = replace(SUMMARY_FORMAT, name="figure")


@dataclass
class _File:
    """A file with figures, its document if it has one, and what its figures are."""

    file: InputFile
    document_id: str = ""
    title: str = ""
    input_hash: str = ""
    keys: list[str] = field(default_factory=list)
    figures: list[dict[str, object]] = field(default_factory=list)

    @property
    def row(self) -> tuple[object, ...]:
        return self.input_hash, self.keys, self.file.name, self.figures


@step(writes=["described_figures", "loaded_documents", "loaded_pages", "skipped_files"])
def describe_figures(
    loaded_documents: pl.LazyFrame,
    loaded_pages: pl.LazyFrame,
    skipped_files: pl.LazyFrame,
    *,
    settings: DescribeFigures,
    chat_model: ChatModel,
    prompts: Prompts,
    figure_files: Callable[[Path], Mapping[str, InputFile]],
    previous: Previous,
    progress: Progress,
) -> Iterator[Mapping[str, pl.DataFrame | None]]:
    """Have a model describe the figures of PDF files, slides and picture files.

    A figure is a picture above a size that is on one page only, or what is drawn above a caption.
    Its description follows the text of its document, below a heading that says that a model wrote
    it; in `loaded_pages` it has a row with its page and the box of the figure. A picture file
    without text becomes a document. If a request fails, its figure has no description, and the
    ledger lists the request. Figures of unchanged files are reused from the last version.
    """
    with TemporaryDirectory(prefix="graphrag-index-") as folder:
        tables = loaded_documents, loaded_pages, skipped_files
        files = figure_files(Path(folder))
        yield from _describe(files, tables, settings, chat_model, prompts, previous, progress)


def _describe(
    figure_files: Mapping[str, InputFile],
    tables: tuple[pl.LazyFrame, pl.LazyFrame, pl.LazyFrame],
    settings: DescribeFigures,
    chat_model: ChatModel,
    prompts: Prompts,
    previous: Previous,
    progress: Progress,
) -> Iterator[Mapping[str, pl.DataFrame | None]]:
    loaded_documents, loaded_pages, skipped_files = tables
    system = prompts.fill("describe_figures", {"max_words": str(settings.max_words)}).strip()
    prompt = Message(role="system", content=system)
    prefix = describe_figures.prompt_hash(settings, chat_model.settings.identity(), prompt=system)
    of_files = loaded_documents.filter(pl.col("path").is_in(list(figure_files)))
    files = _list_files(of_files, skipped_files, figure_files, prefix)
    progress.start(len(files), "files")
    input_hash = pl.Series([file.input_hash for file in files], dtype=pl.String)
    kept, todo = reuse_rows(previous, TABLE, input_hash, replies=chat_model)
    for at, figures in kept.select("at", "figures").iter_rows():
        files[at].figures = figures
    progress.advance(kept.height)
    new = [at for at, is_new in enumerate(todo) if is_new]
    n_failed, problem = 0, ""
    texts = _read_texts([files[at] for at in new], of_files, loaded_pages)
    requests = _make_requests(texts, prompt, settings.max_figures, progress)
    for (file, figure), outcome in pair_outcomes(chat_model, requests):
        file.keys += outcome.keys
        if outcome.failure:
            # Store an empty hash, so that the next run does not reuse the row.
            file.input_hash = ""
            n_failed += 1
            problem = problem or f"; {outcome.unit}: {outcome.failure}"
        else:
            file.figures.append({**figure, "description": outcome.values[-1][1]})
    rows = make_reply_rows(TABLE, [(at, *files[at].row) for at in new], chat_model)
    yield {TABLE.name: pl.concat([rows.select(kept.columns), kept]).sort("at").drop("at")}
    if lost := join_counts(figures_without_a_description=n_failed):
        logger.warning("Lost: %s", lost)
    yield from _add_descriptions(
        [file for file in files if file.figures],
        chat_model.settings.model,
        tables,
        problem,
    )


def _list_files(
    documents: pl.LazyFrame,
    skipped: pl.LazyFrame,
    figure_files: Mapping[str, InputFile],
    prefix: str,
) -> list[_File]:
    """Return the files with figures: those of documents, then pictures that have no text."""
    files, n_of_picture = list[_File](), Counter[str]()

    def add(file: _File, text: str) -> None:
        try:
            digest = digest_file(file.file.path)
        except OSError:
            return
        file.input_hash = content_id(prefix, file.file.name, digest, text)
        if not file.document_id:
            file.document_id = content_id("picture", digest, str(n_of_picture[digest]))
            n_of_picture[digest] += 1
        files.append(file)

    columns = documents.select("id", "title", "path", "text")
    for batch in read_batches(columns, BATCH_DOCUMENTS, has_long_texts=True):
        for document_id, title, path, text in batch.iter_rows():
            add(_File(figure_files[path], document_id, title), text)
    for path in skipped.select("path").collect().to_series():
        if path in figure_files and figure_files[path].type in PICTURE_SUFFIXES:
            add(_File(figure_files[path]), "")
    return files


def _read_texts(
    files: Sequence[_File], documents: pl.LazyFrame, pages: pl.LazyFrame
) -> Iterator[tuple[_File, str, dict[int, tuple[int, int]]]]:
    """Yield files with the texts of their documents and the spans of their pages."""
    by_id = {file.document_id: file for file in files if file.title}
    columns = documents.select("id", "text")
    for batch in read_batches(columns, BATCH_DOCUMENTS, has_long_texts=True):
        rows = batch.filter(pl.col("id").is_in(list(by_id)))
        spans: dict[str, dict[int, tuple[int, int]]] = defaultdict(dict)
        is_known = pl.col("document_id").is_in(rows["id"].to_list())
        names = ("document_id", "number", "start_char", "end_char")
        for document_id, number, *span in (
            pages.filter(is_known).select(names).collect().iter_rows() if rows.height else ()
        ):
            spans[document_id][number] = (span[0], span[1])
        for document_id, text in rows.iter_rows():
            yield by_id[document_id], text, spans[document_id]
    for file in files:
        if not file.title:
            yield file, "", {}


def _make_requests(
    texts: Iterable[tuple[_File, str, dict[int, tuple[int, int]]]],
    prompt: Message,
    max_figures: int,
    progress: Progress,
) -> Iterator[tuple[tuple[_File, dict[str, object]], Request]]:
    """Yield each figure as a record of the table without its description, and its request."""
    for file, text, pages in texts:
        path, suffix = file.file.path, file.file.type
        try:
            figures, n = call_parser(path, "figures", suffix, max_figures)
            if n > len(figures):
                told = "%s: only %d of %d figures are described (describe_figures.max_figures)."
                logger.warning(told, file.file.name, len(figures), n)
            for figure, caption, context in _read_contexts(figures, text, pages):
                drawn = call_parser(path, "picture of a figure", suffix, figure)
                record = {**asdict(figure), "caption": caption}
                del record["scale"], record["content_hash"]
                said = "that refers to the figure" if figure.name else "of the page"
                shown = {"Caption": caption, f"Text of the document {said}": context}
                parts = [f"{name}:\n{quote_text(words)}" for name, words in shown.items() if words]
                content = "\n\n".join(parts) or "A picture without a caption."
                user = Message(role="user", content=content, picture=Picture(*drawn))
                label = f"{file.file.name}, {name_place(figure.label)}, {figure.name or 'picture'}"
                yield (file, record), Request(label, [prompt, user], FIGURE_FORMAT)
        except (UnreadableFile, OSError) as error:
            file.input_hash = ""
            logger.warning("The figures of %s are not read: %s", file.file.name, error)
        progress.advance()


def _read_contexts(
    figures: Sequence[Figure], text: str, pages: Mapping[int, tuple[int, int]]
) -> Iterator[tuple[Figure, str, str]]:
    """Yield figures with the whole caption and the text beside it, both of the document's text.

    That text is the sentences that name the figure, or the text of the page if it has no name.
    """
    sentences = split_sentences(text) if any(figure.name for figure in figures) else []
    starts = [sentence.start for sentence in sentences]
    named = list(FIGURE_NAME.finditer(text)) if sentences else []
    for figure in figures:
        if not figure.name:
            start, end = pages.get(figure.page, (0, 0))
            yield figure, "", text[start:end].strip()[:MAX_CONTEXT_CHARS]
            continue
        number = FIGURE_NAME.match(figure.name)
        places = [name for name in named if number and name[1] == number[1]]
        caption, span = figure.caption, (0, 0)
        for name in places:
            start = name.start()
            is_first = _PARAGRAPH_START.search(text, max(0, start - 20), start)
            if is_first and is_caption(text, name):
                end = text.find("\n\n", start)
                end = len(text) if end < 0 else end
                caption, span = clean_line(text[start:end])[:MAX_CAPTION_CHARS], (start, end)
                break
        mentions: dict[str, None] = {}
        for name in places:
            at = bisect_right(starts, name.start()) - 1
            if at >= 0 and not span[0] <= name.start() < span[1]:
                mentions[clean_line(text[sentences[at].start : sentences[at].end])] = None
        yield figure, caption, "\n".join(mentions)[:MAX_CONTEXT_CHARS]


def _add_descriptions(
    files: Sequence[_File],
    model: str,
    tables: tuple[pl.LazyFrame, pl.LazyFrame, pl.LazyFrame],
    problem: str,
) -> Iterator[Mapping[str, pl.DataFrame | None]]:
    """Yield the loaded tables with the descriptions; None for those that do not change."""
    documents, pages, skipped = tables
    if not files:
        if not documents.select(pl.len()).collect().item():
            raise InputError(
                f"No document has text, and no picture was described{problem}. "
                "`graphrag-index retry` sends failed requests again."
            )
        yield dict.fromkeys(("loaded_documents", "loaded_pages", "skipped_files"))
        return
    by_path = {file.file.name: file for file in files}
    new_pages, order = list[tuple[object, ...]](), list[str]()
    pictures = sorted((file for file in files if not file.title), key=lambda file: file.file.name)

    def add_parts(rows: pl.DataFrame) -> Mapping[str, pl.DataFrame]:
        texts = rows["text"].to_list()
        for at, path in enumerate(rows["path"]):
            if file := by_path.get(path):
                texts[at], found = _write_parts(texts[at], file, model)
                new_pages.extend(found)
        order.extend(rows["id"])
        return {"loaded_documents": rows.with_columns(text=pl.Series(texts, dtype=pl.String))}

    # A picture in a message has the subject of the message before its name, and its date.
    above = {str(path) for file in pictures for path in PurePosixPath(file.file.name).parents}
    messages = documents.filter(pl.col("path").is_in(list(above)))
    heads = messages.select("path", "title", "creation_date").collect().rows_by_key("path")

    def make_document(file: _File) -> pl.DataFrame:
        path = PurePosixPath(file.file.name)
        found = next((heads[str(one)][0] for one in path.parents if str(one) in heads), None)
        title, date = (f"{found[0]}: {path.name}", found[1]) if found else (path.name, "")
        row = (file.document_id, title, "", date, None, file.file.name, None)
        return pl.DataFrame([row], TABLES["loaded_documents"].schema, orient="row")

    for batch in read_batches(documents, BATCH_DOCUMENTS, has_long_texts=True):
        start = 0
        for at, path in enumerate(batch["path"]):
            while pictures and pictures[0].file.name < path:
                yield add_parts(batch[start:at])
                yield add_parts(make_document(pictures.pop(0)))
                start = at
        yield add_parts(batch[start:])
    for file in pictures:
        yield add_parts(make_document(file))
    rows = pl.DataFrame(new_pages, TABLES["loaded_pages"].schema, orient="row")
    yield from _merge_pages(pages, rows, order)
    described = [file.file.name for file in files if not file.title]
    yield {"skipped_files": skipped.filter(~pl.col("path").is_in(described)).collect()}


def _write_parts(text: str, file: _File, model: str) -> tuple[str, list[tuple[object, ...]]]:
    """Return a text with the descriptions of its figures, and their rows of `loaded_pages`."""
    rows = list[tuple[object, ...]]()
    for figure in file.figures:
        place = f"{figure['name'] or 'Picture'} on {name_place(str(figure['label']))}"
        parts = (f"# {place}, as described by a model", figure["caption"], figure["description"])
        start = len(text) + 2 * bool(text)
        text = "\n\n".join(str(part) for part in (text, *parts) if part)
        box = [figure[name] for name in ("left", "top", "width", "height")]
        sides = ("start_char", "end_char", "left", "top", "width", "height")
        boxes = [dict(zip(sides, (start, len(text), *box), strict=True))]
        size = (figure["page_width"], figure["page_height"])
        place_of = (file.document_id, "figure", figure["page"], figure["label"], model)
        rows.append((*place_of, start, len(text), *size, boxes, ""))
    return text, rows


def _merge_pages(
    pages: pl.LazyFrame, new: pl.DataFrame, order: Sequence[str]
) -> Iterator[Mapping[str, pl.DataFrame]]:
    """Yield the pages with new ones after those of the same document."""
    numbers = pl.DataFrame({"document_id": order}).with_row_index("at")
    new = new.join(numbers, on="document_id", maintain_order="left")
    for batch in read_batches(pages, BATCH_PAGES):
        rows = batch.join(numbers, on="document_id", maintain_order="left")
        # The last document may go on in the next batch.
        is_due = pl.col("at") < rows["at"].max()
        due = pl.concat([rows, new.filter(is_due)]).sort("at", maintain_order=True)
        yield {"loaded_pages": due.drop("at")}
        new = new.filter(~is_due)
    yield {"loaded_pages": new.drop("at")}

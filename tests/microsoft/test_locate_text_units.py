"""Text units of Microsoft's are where their documents have them, with and without metadata."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import graphrag_query
from graphrag_index.llm.tokens import load_encoding
from graphrag_index.microsoft.prepended_text import restore_text
from graphrag_index.microsoft.read_positions import find_text_unit
from graphrag_index.microsoft.read_tables import MicrosoftIndex
from graphrag_index.storage.table_store import open_index
from graphrag_query.terminal import print_answer
from tests.fixtures.commands import Call
from tests.fixtures.microsoft_index import (
    MICROSOFT,
    SEARCHES,
    Tables,
    check_citations,
    needs_index,
    version_3,
    write,
)


def test_a_text_unit_is_found_where_its_document_has_it() -> None:
    document = "\ufeffOne two. One two. Thrée"
    assert find_text_unit("\ufeffOne two.", document) == (0, 0, 0)
    assert find_text_unit("One two.", document, 2) == (10, 0, 0)
    assert find_text_unit("One two.", document, 11) == (1, 0, 0)
    assert find_text_unit("Four", document) is None


def test_halves_of_a_cut_character_are_left_out() -> None:
    assert find_text_unit("\ufffd\ufffd Thr\ufffd", "One. Thrée") == (4, 2, 1)
    assert find_text_unit("title: a.\n\ufffdne", "One. Thrée") == (1, 11, 0)
    # A document may have the mark itself.
    assert find_text_unit("a\ufffd", "a\ufffd.") == (0, 0, 0)


@pytest.mark.parametrize(
    "metadata",
    [
        "title: a.\n",
        "title: a.\nsource: http://b: c.\n",
        "título: Zoë: 北京.\n",
        "title: .\n",
        "title: a\nb: c.\n\nd.\n",
        "a: b: c\nd.\n",
    ],
)
def test_metadata_before_a_text_unit_is_left_out(metadata: str) -> None:
    n_chars = len(metadata)
    assert find_text_unit(f"{metadata}One", "One two.") == (0, n_chars, 0)
    assert find_text_unit(f"{metadata}two", "One two.", 1, [metadata]) == (4, n_chars, 0)


def test_lines_of_the_document_are_text_even_if_they_look_like_metadata() -> None:
    document = "title: a.\nOne.\ntitle: a.\nTwo"
    assert find_text_unit("title: a.\nOne.", document) == (0, 0, 0)
    assert find_text_unit("title: a.\ntitle: a.\nOne.", document) == (0, 10, 0)
    assert find_text_unit("title: a.\nTwo", document, 1) == (15, 0, 0)
    # What is neither metadata nor in the document is not removed.
    assert find_text_unit("He said: no\nOne", document) is None
    assert find_text_unit("title: b.\n", document) is None
    assert find_text_unit("Remark: one.\nTwo is lost.\nTwo", document, 1, ["title: a.\n"]) is None


def test_a_text_unit_may_be_metadata_alone() -> None:
    assert find_text_unit("title: a.\n", "") == (0, 10, 0)
    assert find_text_unit("title: a.\n", "One", 1, ["title: a.\n"]) == (1, 10, 0)


def cut_into_text_units(text: str, metadata: Mapping[str, str], size: int, step: int) -> list[str]:
    """Cut a text into windows of tokens, with metadata before each, as Microsoft's program does."""
    encoding = load_encoding("cl100k_base")
    tokens = encoding.encode_ordinary(text)
    head = "".join(f"{key}: {value}.\n" for key, value in metadata.items())
    starts = range(0, max(len(tokens) - size + step, 1), step)
    return [head + encoding.decode(tokens[start : start + size]) for start in starts]


def write_tables(
    folder: Path, documents: Sequence[tuple[str, str]], units: Sequence[tuple[str, str]]
) -> Tables:
    """Write an index of documents (id, text) and text units (document id, text).

    Every entity and relationship is in every text unit.
    """
    tables = version_3()
    ids = pl.Series("id", [f"u{number}" for number in range(len(units))], pl.String)
    names = {"id": pl.String, "text": pl.String}
    texts = pl.DataFrame(units, schema={"document_id": pl.String, "text": pl.String}, orient="row")
    tables["text_units"] = texts.with_columns(
        ids,
        n_tokens=pl.lit(9),
        entity_ids=pl.lit(tables["entities"]["id"]).implode(),
        relationship_ids=pl.lit(tables["relationships"]["id"]).implode(),
    )
    tables["documents"] = pl.DataFrame(documents, schema=names, orient="row").with_columns(
        title="id", text_unit_ids=pl.lit([], pl.List(pl.String))
    )
    for name in ("entities", "relationships"):
        tables[name] = tables[name].with_columns(text_unit_ids=pl.lit(ids).implode())
    del tables["covariates"]
    write(folder, tables)
    return tables


_PIECES = [
    *("title: a.\n", "author", ": ", ".\n", "\n", ". ", "Ada Byron met Bo", " Cy"),
    *("é", "北京", "😀", "\ufffd"),
]
_TEXTS = st.lists(st.sampled_from(_PIECES) | st.characters(codec="utf-8"), max_size=30).map("".join)
# A value that is itself a line of metadata cannot be told from one.
_VALUES = _TEXTS.map(lambda text: text.replace("title: a.\n", "title"))
_METADATA = st.dictionaries(st.sampled_from(["title", "author", "größe", "a.b"]), _VALUES)


@given(
    documents=st.lists(st.tuples(_TEXTS, _METADATA, st.booleans()), min_size=1, max_size=4),
    size=st.integers(1, 12),
    step=st.integers(1, 12),
)
def test_every_text_unit_is_a_span_of_its_document(
    documents: list[tuple[str, dict[str, str], bool]], size: int, step: int
) -> None:
    texts = [text for text, _, _ in documents]
    # Equal texts have equal ids.
    ids = [f"d{texts.index(text)}" for text in texts]
    known = {id: text for id, (text, _, is_known) in zip(ids, documents, strict=True) if is_known}
    units = [
        (id, unit)
        for id, (text, metadata, _) in zip(ids, documents, strict=True)
        for unit in cut_into_text_units(text, metadata, size, min(step, size))
    ]
    with TemporaryDirectory() as folder:
        write_tables(Path(folder), list(known.items()), units)
        opened = MicrosoftIndex(Path(folder)).tables
        found = {name: rows.collect() for name, rows in opened.items()}
        restored = restore_text(opened["text_units"]).select("document_id", "text").collect()
    assert restored.rows() == units
    for document, text, start, end in (
        found["text_units"].select("document_id", "text", "start_char", "end_char").rows()
    ):
        assert known.get(document, text)[start:end] == text
    for places in (*found["entities"]["evidence"], *found["relationships"]["evidence"]):
        for document, start, end in (place.values() for place in places):
            assert 0 <= start <= end
            assert document not in known or end <= len(known[document])
    assert all(start >= 0 for start in found["mentions"]["start_char"])


ARTICLES = {
    "polar.txt": "The ship Terra Nova left Cardiff in June 1910. Tom Crean sailed with it.\n"
    "Tom Crean walked 56 kilometres alone to Hut Point. He saved the life of Edward Evans.",
    "heart.txt": "title: this line is text.\nEdward Evans was ill with scurvy. William Lashly "
    "stayed with him in the tent. Tom Crean had three biscuits for the walk.",
}


def write_articles(folder: Path, is_prepended: bool) -> Path:
    """Write two articles with a community and a report, in overlapping text units."""
    units = [
        (title, unit)
        for title, text in ARTICLES.items()
        for unit in cut_into_text_units(
            text, {"title": title, "author": "Zoë: B"} if is_prepended else {}, 24, 18
        )
    ]
    tables = write_tables(folder, list(ARTICLES.items()), units)
    names = ["TOM CREAN", "EDWARD EVANS", "WILLIAM LASHLY", "TERRA NOVA"]
    ends = {"source": [*names[:3], names[0]], "target": [*names[1:], names[1]]}
    changed: dict[str, dict[str, list[str]]] = {"entities": {"title": names}, "relationships": ends}
    for name, columns in changed.items():
        series = [pl.Series(column, values) for column, values in columns.items()]
        tables[name] = tables[name].with_columns(*series)
    return write(folder, tables)


@pytest.mark.parametrize("is_prepended", [False, True])
@pytest.mark.parametrize(
    ("method", "question"),
    [
        *((method, "How far did Tom Crean walk?") for method in ("local", "basic", "drift")),
        ("path", "How is Tom Crean connected with William Lashly?"),
    ],
)
def test_every_citation_is_what_its_document_has_there(
    tmp_path: Path, method: str, question: str, is_prepended: bool
) -> None:
    with graphrag_query.open(write_articles(tmp_path, is_prepended)) as index:
        answer = index.search(method, question)
        check_citations(index, answer)
    titles = {f"title: {c.document_id}. author: Zoë: B." for c in answer.citations}
    assert {c.prepended for c in answer.citations} == (titles if is_prepended else {""})


@pytest.mark.parametrize("is_prepended", [False, True])
def test_metadata_is_beside_the_text_in_a_context(tmp_path: Path, is_prepended: bool) -> None:
    with graphrag_query.open(write_articles(tmp_path, is_prepended)) as index:
        rows = index.context("How far did Tom Crean walk?", "basic").tables["Sources"]
    assert not any("author" in text for text in rows["text"])
    for title, headings in rows.select("document", "headings").rows():
        assert headings == (f"title: {title}. author: Zoë: B." if is_prepended else "")


def test_words_of_the_metadata_are_searched(tmp_path: Path) -> None:
    with graphrag_query.open(write_articles(tmp_path, True)) as index:
        vectors = index.store.vectors("text_unit_text")
        assert vectors.find_matching_rows("Zoë", 3, ["human_readable_id"]).height == 3


def test_the_terminal_shows_the_metadata_behind_the_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with graphrag_query.open(write_articles(tmp_path, True)) as index:
        answer = index.basic("How far did Tom Crean walk?")
    print_answer(answer)
    first = answer.citations[0]
    place = f"characters {first.start_char:,} to {first.end_char:,} – {first.prepended}\n"
    assert place in capsys.readouterr().out
    assert first.prepended in answer._repr_html_()


@needs_index
@pytest.mark.parametrize("method", list(SEARCHES))
def test_a_real_index_with_metadata_quotes_only_its_documents(tmp_path: Path, method: str) -> None:
    folder = tmp_path / "index"
    shutil.copytree(MICROSOFT, folder)
    path = folder / "text_units.parquet"
    rows = pl.read_parquet(path)
    longer = pl.lit("title: Dulce.\nsource: a: b.\n") + pl.col("text")
    rows.with_columns(longer.alias("text")).write_parquet(path)
    with graphrag_query.open(folder) as index:
        answer = index.search(method, SEARCHES[method])
        check_citations(index, answer)
    assert {citation.prepended for citation in answer.citations} == {"title: Dulce. source: a: b."}


def test_an_import_and_its_exports_give_the_text_back(graphrag_index: Call, tmp_path: Path) -> None:
    theirs, project = write_articles(tmp_path / "theirs", True), tmp_path / "project"
    (project / "input").mkdir(parents=True)
    (project / "input" / "new.txt").write_text("Ada met Bo.", encoding="utf-8")
    assert graphrag_index("init", project).code == 0
    given = pl.read_parquet(theirs / "text_units.parquet")["text"].to_list()

    def import_and_export(source: Path, target: Path) -> list[str]:
        result = graphrag_index("import", source, "--root", project, "--replace")
        assert result.code == 0, result.err
        options = ("--to", "microsoft", "--root", project)
        assert graphrag_index("export", target, *options).code == 0
        texts: list[str] = pl.read_parquet(target / "text_units.parquet")["text"].to_list()
        return texts

    def check_spans() -> None:
        store, version = open_index(project / "output")
        names = ("documents", "text_units")
        documents, units = (store.scan(name, version.tables[name]).collect() for name in names)
        texts = dict(documents.select("id", "text").rows())
        columns = ("document_id", "text", "start_char", "end_char")
        for document, text, start, end in units.select(columns).rows():
            assert texts[document][start:end] == text

    assert import_and_export(theirs, tmp_path / "first") == given
    assert import_and_export(tmp_path / "first", tmp_path / "second") == given
    check_spans()
    # The Arrow files beside the tables are ours; the tables alone are Microsoft's.
    shutil.rmtree(tmp_path / "first" / "graphrag_index")
    assert import_and_export(tmp_path / "first", tmp_path / "third") == given
    check_spans()

"""Headlines of documents: the subject of a document in the words of its author.

A headline is the title of a document, the subject of a letter or the first heading of a text. The
name of a file is none, nor is a heading that many documents have.
"""

import re

import polars as pl

from graphrag_nlp.text.languages import expand_pattern, read_lists
from graphrag_nlp.text.values import find_dates

FILE_EXTENSION = r"\.\w{1,5}$"
# Maximum number of characters of a headline, and of the start of a text in which it is searched.
MAX_HEADLINE_CHARS, SEARCHED_CHARS = 100, 1_000
# A headline of more documents than this, and of more than this share, does not distinguish them.
MAX_DOCUMENTS, MAX_DOCUMENT_SHARE = 5, 0.2
# A document with more bytes is a book, which has more themes than its title says.
MAX_DOCUMENT_BYTES = 100_000

# The subject in the head of a letter, and the first heading of a text in Markdown or in plain
# text: one line without an end of a sentence, before an empty line.
_SUBJECT = r"\A(?:[A-Za-z-]+: .*\r?\n(?:[ \t].*\r?\n)*)*?Subject: +(\S.*)"
_HEADING = r"\A\s*#{1,3} +(\S.*)"
_FIRST_LINE = r"\A\s*(\p{Lu}[^\n]*[^\s.,;:!?…\"”»])[ \t\r]*\n[ \t\r]*\n"
_SENTENCE_END = r"\p{Ll}{3}[.!?] "
# Two paragraphs at the start that begin with labels: "Ann: Hello", "Bob: Hi".
_TURNS = r"\A\s*\p{Lu}[^:\n]{0,30}: [^\n]*\n\s*\n\s*\p{Lu}[^:\n]{0,30}: "
# Phrases that address readers or an audience, and credits.
_BOILERPLATE = expand_pattern(
    read_lists("graphrag_nlp/text/data/standalone")["patterns"], "BOILERPLATE"
)
_NO_HEADLINES = read_lists("graphrag_nlp/text/data/no_headlines")
_SALUTATION = f"^(?:{'|'.join(_NO_HEADLINES['salutations'].values())})"
_MARKS_OF_DOCUMENTS = "|".join(" ".join(_NO_HEADLINES["document_marks"].values()).split())
# Lines that only mark a document or a page: "CONFIDENTIAL DRAFT", "Page 1 of 7".
_ARE_MARKS = rf"^(?i:\W*\b(?:{_MARKS_OF_DOCUMENTS}|v?\d+)\b)+\W*$"
# Words that may stand beside the date of a letter: "Bern, Monday", "Bern, den".
_BESIDE_DATE = re.compile(r"\W*(?:[^\W\d_]+,)?\W*[^\W\d_]*\W*")
# Marks before the words of a headline: "Re:", a list mark, "Chapter 2:", the number of a section. A
# number without a mark belongs to the headline: "101 Dalmatians".
_PREFIX = (
    r"^(?i:[#*•>-]+\s*|(?:re|fwd?|aw|wg|sv|antw|tr|rv)(?:\[\d+\])?:\s*|\[[^\]]*\]\s*|"
    r"(?:chapter|part|section|appendix|kapitel|teil|chapitre)\s+(?:[\dIVX]+|[A-Z])[.:]\s+|"
    r"\d{1,3}(?:\.\d{1,3})*[.)]+\s+)+"
)
_SUFFIX = r"(?i:\s*\[[^\]]*\]|\s*\((?:was|thread|fwd)\b[^)]*\)*|[\s.…:;,*_-]+)+$"
_MARKS = r"([?!])[?!]+"
# A headline such as "Report 7" tells only a number.
_IS_NUMBER = r"^\p{L}+[ #-]*\d+$"
# Files are numbered with zeros or hyphens: "01 Introduction.pdf", "12 - Minutes.pdf".
_FILE_NUMBER = r"^(?:0\d[\s.-]+|\d{1,2}\s+-\s+)"
_IS_TITLE = r"^(?:\d[\d.,:]*\s+)?\p{Lu}[^_\n]*\p{L}{2}[^_\n]*$"


def read_headlines(documents: pl.LazyFrame) -> pl.DataFrame:
    """Return `id` and `headline` of each document in the order of rows; "" without a headline."""
    title, start = pl.col("title"), pl.col("text").str.head(SEARCHED_CHARS)
    file_name = title.str.replace(FILE_EXTENSION, "")
    name = file_name.str.replace(_FILE_NUMBER, "")
    # The name of a file is a title if it has several words, such as "Annual report.pdf".
    is_title = name.str.contains(_IS_TITLE) & ((name == title) | file_name.str.contains(" "))
    cut = title.str.replace(_PREFIX, "")
    is_numbered = (cut != title) & cut.str.contains(_IS_TITLE)
    first_line = start.str.extract(_FIRST_LINE)
    is_heading = ~(
        first_line.str.contains(f"{_SENTENCE_END}|{_SALUTATION}|{_BOILERPLATE}")
        | start.str.contains(_TURNS)
    )
    found = pl.coalesce(
        start.str.extract(_SUBJECT),
        pl.when(is_title | is_numbered).then(name),
        start.str.extract(_HEADING),
        pl.when(is_heading).then(first_line),
    )
    words = found.str.replace(_PREFIX, "").str.replace(_SUFFIX, "")
    words = (
        words.str.replace_all(_MARKS, "$1")
        .str.replace_all(r"\s+", " ")
        .str.strip_chars(" *_\u00a0")
    )
    is_fit = (
        words.str.contains(r"\p{L}{2}")
        & ~words.str.contains(f"{_IS_NUMBER}|{_ARE_MARKS}")
        & ~words.str.contains("@", literal=True)
        & (words.str.len_chars() <= MAX_HEADLINE_CHARS)
        & (pl.col("text").str.len_bytes() <= MAX_DOCUMENT_BYTES)
    )
    first = words.str.head(1).str.to_uppercase()
    headline = pl.when(is_fit).then(first + words.str.slice(1)).fill_null("")
    headlines = documents.select("id", "language", headline=headline).collect()
    dated = headlines.filter(pl.col("headline").str.contains(r"\d"))
    dates = [row[1] for row in dated.drop("id").unique().iter_rows() if _is_date(*row)]
    is_date = pl.col("headline").is_in(dates)
    headlines = headlines.select("id", pl.when(~is_date).then("headline").fill_null(""))
    limit = max(MAX_DOCUMENTS, MAX_DOCUMENT_SHARE * headlines.height)
    is_rare = pl.len().over("headline") <= limit
    return headlines.with_columns(pl.when(is_rare).then("headline").otherwise(pl.lit("")))


def _is_date(language: str, headline: str) -> bool:
    """Return whether a headline is only a date, perhaps with the name of the day and a place."""
    date = next(find_dates(headline, language), None)
    if date is None:
        return False
    rest = f"{headline[: date.start_char]} {headline[date.end_char :]}"
    if date.first == date.last:
        return _BESIDE_DATE.fullmatch(rest) is not None
    return not any(map(str.isalnum, rest))

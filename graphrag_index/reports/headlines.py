"""Headlines of documents: what their authors say that they are about.

A headline is the title of a document, the subject of a letter or the first heading of a text. The
name of a file is none, nor is what stands over many documents.
"""

import polars as pl

FILE_EXTENSION = r"\.\w{1,5}$"
# Maximum number of characters of a headline, and of the start of a text in which it is searched.
MAX_HEADLINE_CHARS, SEARCHED_CHARS = 100, 1_000
# A headline of more documents than this, and than this share of all, does not tell them apart.
MAX_DOCUMENTS, MAX_DOCUMENT_SHARE = 5, 0.2
# A document with more bytes is a book, which has more themes than its title says.
MAX_DOCUMENT_BYTES = 100_000

# The subject in the head of a letter, and the first heading of a text in Markdown or in plain
# text: one line without an end of a sentence, before an empty line.
_SUBJECT = r"\A(?:[A-Za-z-]+: .*\r?\n(?:[ \t].*\r?\n)*)*?Subject: +(\S.*)"
_HEADING = r"\A\s*#{1,3} +(\S.*)"
_FIRST_LINE = r"\A\s*(\p{Lu}[^\n]*[^\s.,;:!?…\"”»])[ \t\r]*\n[ \t\r]*\n"
_SENTENCE_END = r"\p{Ll}{3}[.!?] "
# What stands before the words of a headline: an answer, a list, a number; and sections behind it.
_PREFIX = (
    r"^(?i:[#*•>-]+\s*|(?:re|fwd?|aw|wg|sv|antw|tr|rv)(?:\[\d+\])?:\s*|\[[^\]]*\]\s*|"
    r"(?:chapter|part|section|appendix|kapitel|teil|chapitre)\s+(?:[\dIVX]+|[A-Z])[.:]\s+|"
    r"\d+(?:\.\d+)*\.?\)?\s+)+"
)
_SUFFIX = r"(?i:\s*\[[^\]]*\]|\s*\((?:was|thread|fwd)\b[^)]*\)*|[\s.…:;,*_-]+)+$"
_MARKS = r"([?!])[?!]+"
# "Report 7" tells nothing but a number.
_IS_NUMBER = r"^\p{L}+[ #-]*\d+$"
_IS_TITLE = r"^\p{Lu}[^_\n]*\p{L}{2}[^_\n]*$"


def read_headlines(documents: pl.LazyFrame) -> pl.DataFrame:
    """Return `id` and `headline` of each document in the order of rows; "" without a headline."""
    title, start = pl.col("title"), pl.col("text").str.head(SEARCHED_CHARS)
    name = title.str.replace(FILE_EXTENSION, "")
    # The name of a file is a title if it has several words, such as "Annual report.pdf".
    is_title = name.str.contains(_IS_TITLE) & ((name == title) | name.str.contains(" "))
    cut = title.str.replace(_PREFIX, "")
    is_numbered = (cut != title) & cut.str.contains(_IS_TITLE)
    first_line = start.str.extract(_FIRST_LINE)
    found = pl.coalesce(
        start.str.extract(_SUBJECT),
        pl.when(is_title | is_numbered).then(name),
        start.str.extract(_HEADING),
        pl.when(~first_line.str.contains(_SENTENCE_END)).then(first_line),
    )
    words = found.str.replace(_PREFIX, "").str.replace(_SUFFIX, "")
    words = (
        words.str.replace_all(_MARKS, "$1")
        .str.replace_all(r"\s+", " ")
        .str.strip_chars(" *_\u00a0")
    )
    is_fit = (
        words.str.contains(r"\p{L}{2}")
        & ~words.str.contains(_IS_NUMBER)
        & ~words.str.contains("@", literal=True)
        & (words.str.len_chars() <= MAX_HEADLINE_CHARS)
        & (pl.col("text").str.len_bytes() <= MAX_DOCUMENT_BYTES)
    )
    first = words.str.head(1).str.to_uppercase()
    headline = pl.when(is_fit).then(first + words.str.slice(1)).fill_null("")
    headlines = documents.select("id", headline=headline).collect()
    limit = max(MAX_DOCUMENTS, MAX_DOCUMENT_SHARE * headlines.height)
    is_rare = pl.len().over("headline") <= limit
    return headlines.with_columns(pl.when(is_rare).then("headline").otherwise(pl.lit("")))

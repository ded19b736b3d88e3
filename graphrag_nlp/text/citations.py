"""Citations in Microsoft's syntax: `[Data: Entities (1, 2); Reports (3, +more)]`.

Models also write other brackets or no brackets, no colon, or only the name of a table, as in
`(Sources: 1, 2)`. In square brackets, any text after "Data:" is a citation. Elsewhere a citation
must consist of names of tables and numbers, to distinguish it from prose.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import cache
from typing import Any

import polars as pl

from graphrag_nlp.text.languages import expand_pattern, read_lists, word_set
from graphrag_nlp.text.normalize import UNSPACED

# Row numbers that a context contains, by section ("Entities", "Sources").
ShownRows = Mapping[str, Set[int]]
# Function that maps (section, row number) to the new number, or to None to remove it.
NewRowNumber = Callable[[str, int], int | None]
# (section, distinct row numbers, whether "+more" follows): one section of a citation.
CitedSection = tuple[str, list[int], bool]
# Maximum length of a citation that contains other text than table names and row numbers.
MAX_CITATION_CHARACTERS = 300
# Maximum number of ids per section of a citation; "+more" stands for further ids.
MAX_CITED_IDS = 5
# Numbers in round brackets that are taken for years, unless the context has such a row number.
POSSIBLE_YEARS = range(1500, 2100)

_WORD_LISTS = read_lists("graphrag_nlp/text/data/citations")
_DATA_WORDS, _TABLE_WORDS = _WORD_LISTS["data"].split(), _WORD_LISTS["tables"].split()
_OTHER_WORDS, _JOINING_WORDS = _WORD_LISTS["other_tables"].split(), _WORD_LISTS["joining"].split()


def _words_pattern(words: Iterable[str]) -> str:
    # Try longer words first. In Chinese and Japanese, require no space after a word.
    ordered = sorted(words, key=lambda word: (-len(word), word))
    # `(?-i:` saves compile time: without it, `re` adds the other case of each character.
    return rf"(?:{'|'.join(ordered)})(?!(?-i:(?!{UNSPACED})[^\W\d_]))"


def _make_prefix_pattern(word: str) -> str:
    """Return a pattern that matches the longest prefix of a word that the text has."""
    return f"(?:{'(?:'.join(word)}{')?' * (len(word) - 1)})"


_ALL_WORDS = [*_DATA_WORDS, *_TABLE_WORDS, *_OTHER_WORDS, *_JOINING_WORDS]
# Patterns by name: those of `citation_patterns.yaml`, and those of the word lists.
_PATTERNS: Mapping[str, str | list[str]] = {
    **read_lists("graphrag_nlp/text/data/citation_patterns"),
    "DATA_WORD": _words_pattern(_DATA_WORDS),
    "TABLE_NAME": _words_pattern(_TABLE_WORDS),
    "ONE_WORD_TABLE_NAME": _words_pattern(_TABLE_WORDS + _OTHER_WORDS),
    "JOINING_WORD": _words_pattern({*_JOINING_WORDS} - {"more", "id", "ids"}),
    "CITATION_WORD": _words_pattern(_ALL_WORDS),
    "CITATION_WORD_PREFIX": "|".join(map(_make_prefix_pattern, _ALL_WORDS)),
    "DATA_WORD_PREFIX": "|".join(map(_make_prefix_pattern, _DATA_WORDS)),
    "FIRST_CHARS": rf"*_`\[［【(（{{｛{''.join(dict.fromkeys(word[0] for word in _DATA_WORDS))}",
    "MAX_CHARACTERS": str(MAX_CITATION_CHARACTERS),
}


@cache
def _compile_pattern(name: str) -> re.Pattern[str]:
    """Compile a pattern at its first use: most programs need at most one of the patterns."""
    return re.compile(expand_pattern(_PATTERNS, name), re.IGNORECASE)


def _match_citations(text: str) -> Iterator[re.Match[str]]:
    """Yield the match of each citation in a text, including the space before the citation."""
    return (found for found in _compile_pattern("CITATION").finditer(text) if _is_citation(found))


def _may_be_year(citation: re.Match[str], parts: Iterable[CitedSection]) -> bool:
    """Return whether a citation may be prose with a year, such as "(Source: 1914)"."""
    named = citation["table"] or (citation["strict"] and not _names_table(citation["strict"]))
    is_square = citation["strict"] and citation.group().lstrip()[:1] in "[［【"
    is_year = all(number in POSSIBLE_YEARS for _, numbers, _ in parts for number in numbers)
    return bool(named) and not is_square and is_year


def find_unfinished_citation(text: str) -> int:
    """Return the start of a citation that later text may complete; len(text) if none."""
    found = _compile_pattern("UNFINISHED_CITATION").search(text)
    return found.start() if found else len(text)


def find_cut_off_citation(text: str) -> int | None:
    """Return the start of a citation cut off at the end of the text; None if there is none."""
    whole = [citation.span() for citation in _match_citations(text)]
    found = _compile_pattern("CUT_OFF_CITATION").search(text)
    while found:
        start = found.start()
        end = next((last for first, last in whole if first <= start < last), None)
        if end is None:
            return start
        found = _compile_pattern("CUT_OFF_CITATION").search(text, end)
    return None


def _is_citation(citation: re.Match[str]) -> bool:
    """Return whether a match is a citation, not prose or code."""
    if rows := citation["strict"]:
        if ":" in citation["parted"] or "：" in citation["parted"]:
            # Reject code such as "{data: 1}".
            return _names_table(rows) or not re.search(r"[{｛]", citation.group())
        # Reject a count such as "(data sources: 3)".
        is_name = citation["word"][0].isupper() and rows[0].isupper()
        return _names_table(rows) and (is_name or re.search(r"[(（\[]", rows) is not None)
    if rows := citation["table"]:
        # Reject prose: "(claims 1 and 2)", "(Report 3)". Accept "(Claims 1, 2)", "(Source 3)".
        name = re.match(r"\w+", rows)
        is_one = name is not None and name.group() in ("Report", "Claim", "Bericht", "Rapport")
        is_title = rows[0].isupper() or (not rows[0].islower() and not rows[0].isascii())
        return (
            citation["colon"] is not None
            or re.search(r"[(（\[]", rows) is not None
            or (is_title and not is_one)
        )
    return True


def _names_table(rows: str) -> bool:
    return _compile_pattern("ANY_TABLE_NAME").match(rows) is not None


# Section of a citation in the form that `renumber_citations` writes. `_OWN_CITATION` leaves out
# the space before the citation, which would make the search twice as slow.
_OWN_SECTION = re.compile(r"(\w+) \((-?\d+(?:, -?\d+)*(?:, \+more)?)\)")
_OWN_CITATION = re.compile(rf"\[Data: ({_OWN_SECTION.pattern}(?:; {_OWN_SECTION.pattern})*)\]")
_SECTION_STARTS = {name: tuple(text.split()) for name, text in _WORD_LISTS["sections"].items()}
_WORDS_BESIDE_SECTIONS = word_set(_WORD_LISTS["no_section"])
# Maximum length of a range of row numbers. Of a longer range, only both ends are cited.
_MAX_RANGE_LENGTH = 50


def find_cited_rows(text: str) -> dict[str, set[int]]:
    """Find the row numbers that a text cites, by section."""
    found: dict[str, set[int]] = {}
    for _, _, rows in find_citations(text):
        for section, number in rows:
            found.setdefault(section, set()).add(number)
    return found


def find_citations(
    text: str, shown: ShownRows | None = None
) -> Iterator[tuple[int, int, list[tuple[str, int]]]]:
    """Yield (start, end, rows) for each citation in a text. A row is (section, number).

    "(Source: 1914)" is a citation only if `shown` contains source 1914; otherwise it is prose.
    """
    for citation in _match_citations(text):
        parts = _parse_sections(citation)
        rows = [(section, number) for section, numbers, _ in parts for number in numbers]
        is_shown = any(number in (shown or {}).get(section, ()) for section, number in rows)
        if is_shown or not _may_be_year(citation, parts):
            yield *citation.span(), list(dict.fromkeys(rows))


def check_citations(text: str, shown: ShownRows) -> tuple[str, int]:
    """Remove row numbers that are not in `shown`; return the text and the count of removed."""
    return renumber_citations(
        text, lambda section, number: number if number in shown.get(section, ()) else None
    )


def renumber_citations(text: str, number_of: NewRowNumber) -> tuple[str, int]:
    """Renumber the citations in a text; return the text and the number of removed rows."""
    pieces: list[str] = []
    n_removed = start = 0
    for citation in _match_citations(text):
        parts = _parse_sections(citation)
        written, n_unknown = _format_citation(parts, number_of)
        if written or not _may_be_year(citation, parts):
            n_removed += n_unknown
            pieces += text[start : citation.start()], written
            start = citation.end()
    return "".join([*pieces, text[start:]]).strip(), n_removed


def _format_citation(parts: Iterable[CitedSection], number_of: NewRowNumber) -> tuple[str, int]:
    """Format a citation, after a space, with new row numbers; count the removed numbers."""
    written, n_removed = [], 0
    for section, numbers, has_more in parts:
        found = [number_of(section, number) for number in numbers]
        kept = [str(number) for number in found if number is not None]
        n_removed += len(numbers) - len(kept)
        if kept:
            written.append(f"{section} ({', '.join([*kept, *['+more'] * has_more])})")
    return f" [Data: {'; '.join(written)}]" if written else "", n_removed


def renumber_canonical(text: str, number_of: NewRowNumber) -> str:
    """Renumber citations in the form of `renumber_citations`, a hundred times faster than it."""
    if "[Data: " not in text:
        return text.strip()
    pieces: list[str] = []
    start = 0
    for citation in _OWN_CITATION.finditer(text):
        parts = [
            (part[1], list(map(int, part[2].removesuffix(", +more").split(", "))), "+" in part[2])
            for part in _OWN_SECTION.finditer(citation[1])
        ]
        written, _ = _format_citation(parts, number_of)
        pieces += text[start : citation.start()].removesuffix(" "), written
        start = citation.end()
    return "".join([*pieces, text[start:]]).strip()


def number_cited_rows(
    text: str, rows: Mapping[str, Sequence[int]], numbers: Mapping[str, Any]
) -> str:
    """Replace each cited position in `rows` by the number of that row in `numbers`."""

    def find_row_number(section: str, position: int) -> int | None:
        cited = rows.get(section, ())
        return int(numbers[section][cited[position]]) if 0 <= position < len(cited) else None

    return renumber_canonical(text, find_row_number)


def _parse_sections(citation: re.Match[str]) -> list[CitedSection]:
    """Parse the sections of a citation. Numbers without a section belong to "Sources"."""
    forms = ("data", "square", "strict", "table", "unclosed", "bare", "listed")
    rows = next((citation[form] for form in forms if citation[form]), "")
    parts: list[tuple[str, dict[int, None], bool]] = []
    section = "Sources"
    for token in _compile_pattern("CITATION_TOKEN").finditer(rows):
        if token["name"]:
            name = token["name"].lower()
            if name not in _WORDS_BESIDE_SECTIONS:
                # Map the written name to its section, such as "entity" to Entities.
                section = next(
                    (s for s, starts in _SECTION_STARTS.items() if name.startswith(starts)), name
                )
            continue
        if not parts or parts[-1][0] != section:
            parts.append((section, {}, False))
        numbers = parts[-1][1]
        if token["more"]:
            parts[-1] = (section, numbers, True)
        elif token["number"]:
            numbers[_parse_row_number(token["number"])] = None
        else:
            first, last = _parse_row_number(token["first"]), _parse_row_number(token["last"])
            is_range = 0 <= last - first <= _MAX_RANGE_LENGTH
            numbers.update(dict.fromkeys(range(first, last + 1) if is_range else (first, last)))
    return [(name, list(numbers), has_more) for name, numbers, has_more in parts]


def _parse_row_number(digits: str) -> int:
    """Parse an integer; use only its first 18 characters, so that it fits into 64 bits."""
    return int(digits.replace("–", "-")[:18])


def format_citations(cited: Mapping[str, pl.Expr]) -> pl.Expr:
    """Format lists of cited ids by section in Microsoft's citation syntax; skip empty lists."""
    parts = []
    for section, ids in cited.items():
        shown = ids.list.head(MAX_CITED_IDS).cast(pl.List(pl.String)).list.join(", ")
        rest = pl.when(ids.list.len() > MAX_CITED_IDS).then(pl.lit(", +more"))
        part = pl.concat_str(pl.lit(f"{section} ("), shown, rest.otherwise(pl.lit("")), pl.lit(")"))
        parts.append(pl.when(ids.list.len() > 0).then(part))
    return pl.format("[Data: {}]", pl.concat_str(parts, separator="; ", ignore_nulls=True))

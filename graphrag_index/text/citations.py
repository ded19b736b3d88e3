"""Citations in Microsoft's syntax: `[Data: Entities (1, 2); Reports (3, +more)]`.

Models also write other brackets or no brackets, no colon, or only the name of a table, as in
`(Sources: 1, 2)`. In square brackets, any text after "Data:" is a citation. Elsewhere a citation
must consist of names of tables and numbers, to distinguish it from prose.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from functools import cache

from graphrag_index.text.languages import read_lists, word_set
from graphrag_index.text.normalize import UNSPACED

# Numbers of the rows in a context, by section ("Entities", "Sources").
ShownRows = Mapping[str, Set[int]]
# Function from (section, number) to the new number, or to None to remove the number.
NumberOf = Callable[[str, int], int | None]
# (section, distinct numbers, whether "+more" follows) in a citation.
CitedSection = tuple[str, list[int], bool]
# Maximum characters of a citation that contains other text than names and numbers.
MAX_CITATION = 300
# A number in this range in round brackets is a year, unless the context has a row of this number.
YEARS = range(1500, 2100)

_LISTS = read_lists("text/data/citations")
_DATA_WORDS, _TABLE_WORDS = _LISTS["data"].split(), _LISTS["tables"].split()
_OTHER_WORDS, _JOINING_WORDS = _LISTS["other_tables"].split(), _LISTS["joining"].split()


def _words_pattern(words: Iterable[str]) -> str:
    # Longer words are tried first. In Chinese and Japanese, no space is needed after a word.
    ordered = sorted(words, key=lambda word: (-len(word), word))
    # `(?-i:` saves time: `re` would fold the case of each character of the class at compile time.
    return rf"(?:{'|'.join(ordered)})(?!(?-i:(?!{UNSPACED})[^\W\d_]))"


def _prefix_pattern(word: str) -> str:
    """Return a pattern that matches any prefix of a word, and prefers the longest."""
    return f"(?:{'(?:'.join(word)}{')?' * (len(word) - 1)})"


_OPEN, _CLOSE, _INSIDE = r"[\[［【]", r"[\]］】]", r"[^\[\]［］【】]"
_ANY_OPEN, _ANY_CLOSE = r"[\[［【(（{｛]", r"[\]］】)）}｝]"
_DATA = _words_pattern(_DATA_WORDS)
_TABLE = _words_pattern(_TABLE_WORDS)
_ONE_WORD_TABLE = _words_pattern(_TABLE_WORDS + _OTHER_WORDS)
_ANY_TABLE = rf"(?:text\s+units?(?!\w)|community\s+reports?(?!\w)|{_ONE_WORD_TABLE})"
_JOINING = _words_pattern(word for word in _JOINING_WORDS if word not in ("more", "id", "ids"))
_AND = rf"(?:[,;、，；&和及]|{_JOINING})"
_BETWEEN = rf"\s*(?:{_AND}\s*)+"
_NUMBER = r"#?[-–]?(?>\d+)(?:\s*[-–—]\s*(?>\d+))?(?![^\W和及])"
_NUMBERS = rf"{_NUMBER}(?:{_BETWEEN}(?:{_NUMBER}|\+\s*more))*"
_GROUP = rf"[(（\[]\s*(?:ids?\s+)?{_NUMBERS}\s*[)）\]]"
_ITEM = rf"(?:{_ANY_TABLE}[\s:：]*)?(?:{_GROUP}|{_NUMBER}|\+\s*more)"
_ROWS = rf"{_ITEM}(?:(?:{_BETWEEN}|\s+){_ITEM})*"
_NAMED_GROUP = rf"{_ANY_TABLE}[\s:：]*{_GROUP}"
_GROUPS = rf"{_NAMED_GROUP}(?:{_BETWEEN}(?:{_NAMED_GROUP}|{_GROUP}))*"
# The end of a sentence or of the text.
_SENTENCE_END = r"(?=\s*(?:[.!?。！？]|\n|\Z))"

_NAMES = r"(?:entit(?:y|ies)|relationships?|claims?|reports?|sources?)(?!\w)"
_SQUARE_NUMBERS = r"(?=[:：\s]*\d)(?:[-–—:：,;、，；&\s\d]|and\b|und\b)*"
# In square brackets, a citation without "Data:" has at least the name of a table and its numbers.
_SQUARE = (
    rf"{_OPEN}\s*(?:{_DATA}\s*[:：](?P<data>{_INSIDE}{{0,{MAX_CITATION}}})"
    rf"|(?P<square>{_NAMES}\s*[(（]{_INSIDE}{{0,{MAX_CITATION}}}"
    rf"|(?:{_NAMES}{_SQUARE_NUMBERS})+)){_CLOSE}"
)
_STRICT = (
    rf"{_ANY_OPEN}\s*(?P<word>{_DATA})(?P<parted>\s*[:：]\s*|\s*[-–—]\s*|\s+)"
    rf"(?P<strict>{_ROWS})\s*[.;,]?\s*{_ANY_CLOSE}"
)
_NAMED = rf"[(（{{｛]\s*(?P<table>{_TABLE}(?P<colon>\s*[:：])?\s*{_ROWS})\s*[.;,]?\s*[)）}}｝]"
# A citation without its closing bracket is accepted at the end of a sentence.
_UNCLOSED = rf"{_ANY_OPEN}\s*{_DATA}\s*[:：]\s*(?P<unclosed>{_GROUPS}){_SENTENCE_END}"
_BARE = (
    rf"(?<![\w]){_DATA}\s*[:：]\s*"
    rf"(?:(?P<bare>{_GROUPS})|(?P<listed>{_ANY_TABLE}\s+{_NUMBERS}){_SENTENCE_END})"
)
# Possible first characters of a citation. Testing for them first makes the search five times as
# fast, because most characters of a text are none of them.
_FIRST = rf"*_`\[［【(（{{｛{''.join(dict.fromkeys(word[0] for word in _DATA_WORDS))}"
_LOOKAHEAD = rf"(?=[\s{_FIRST}])(?=[{_FIRST}]|(?<![^\S\n])[^\S\n]+[{_FIRST}])"
# The match includes emphasis marks and brackets around the citation, and the space before it.
_CITATION = _LOOKAHEAD + (
    r"(?:(?<![^\S\n])[^\S\n]+)?(?P<marks>[*_]{1,3}|`)?"
    r"(?:(?P<outer>[\[(（])(?=[\[［【(（{]))?"
    rf"(?:{_SQUARE}|{_STRICT}|{_NAMED}|{_UNCLOSED}|{_BARE})"
    r"(?(outer)[\])）])(?(marks)(?P=marks))"
)

_ALL_WORDS = [*_DATA_WORDS, *_TABLE_WORDS, *_OTHER_WORDS, *_JOINING_WORDS]
_WORDS = _words_pattern(_ALL_WORDS)
_WORD_PREFIX = "|".join(map(_prefix_pattern, _ALL_WORDS))
_DATA_PREFIX = "|".join(map(_prefix_pattern, _DATA_WORDS))
_CONTINUATION = (
    rf"(?:{_WORDS}|\d+|[\s,;、，；:：&+#和及()（）\[\]［］【】{{}}｛｝*_`–—.-])*+"
    rf"(?:{_WORD_PREFIX})?\Z"
)
_UNFINISHED = (
    rf"{_ANY_OPEN}\s*(?:(?:{_DATA}|{_TABLE}){_CONTINUATION}|(?:{_WORD_PREFIX})?\Z)"
    rf"|(?<!\w)(?:{_DATA}\s*(?:\Z|[:：]{_CONTINUATION})|(?:{_DATA_PREFIX})\Z)"
)
# A citation that is incomplete because the reply of the model was cut off.
_CUT_OFF = (
    rf"{_OPEN}\s*{_DATA}\s*[:：][^\[\]［］【】\n]*\Z"
    rf"|{_ANY_OPEN}\s*{_DATA}\s*[:：]{_CONTINUATION}"
    rf"|{_ANY_OPEN}\s*(?:{_DATA}[\s–—-]*)?{_TABLE}(?=[^\n]*\d){_CONTINUATION}"
    rf"|(?<!\w){_DATA}\s*[:：]\s*{_ANY_TABLE}\s*[(（](?:[\d\s,;+、，]|more)*\Z"
)


@cache
def _compile_pattern(pattern: str) -> re.Pattern[str]:
    """Compile a pattern at its first use, because most programs use one pattern or none."""
    return re.compile(pattern, re.IGNORECASE)


def _match_citations(text: str) -> Iterator[re.Match[str]]:
    """Yield the match of each citation in a text, including the space before the citation."""
    return (found for found in _compile_pattern(_CITATION).finditer(text) if _is_citation(found))


def _may_be_prose(citation: re.Match[str], parts: Iterable[CitedSection]) -> bool:
    """Return whether a citation may be a year in prose: "(Source: 1914)"."""
    named = citation["table"] or (citation["strict"] and not _names_table(citation["strict"]))
    is_square = citation["strict"] and citation.group().lstrip()[:1] in "[［【"
    is_year = all(number in YEARS for _, numbers, _ in parts for number in numbers)
    return bool(named) and not is_square and is_year


def find_unfinished_citation(text: str) -> int:
    """Return the start of a citation that more text may complete; len(text) if there is none."""
    found = _compile_pattern(_UNFINISHED).search(text)
    return found.start() if found else len(text)


def find_cut_off_citation(text: str) -> int | None:
    """Return the start of a citation that the end of the text cuts off; None if there is none."""
    whole = [citation.span() for citation in _match_citations(text)]
    found = _compile_pattern(_CUT_OFF).search(text)
    while found:
        place = found.start()
        end = next((last for first, last in whole if first <= place < last), None)
        if end is None:
            return place
        found = _compile_pattern(_CUT_OFF).search(text, end)
    return None


def _is_citation(citation: re.Match[str]) -> bool:
    """Return whether a match is a citation, not prose or code."""
    if rows := citation["strict"]:
        if ":" in citation["parted"] or "：" in citation["parted"]:
            # "{data: 1}" is code.
            return _names_table(rows) or not re.search(r"[{｛]", citation.group())
        # "(data sources: 3)" is a count, not a citation.
        is_name = citation["word"][0].isupper() and rows[0].isupper()
        return _names_table(rows) and (is_name or re.search(r"[(（\[]", rows) is not None)
    if rows := citation["table"]:
        # "(claims 1 and 2)" and "(Report 3)" are prose; "(Claims 1, 2)" and "(Source 3)" are not.
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
    return _compile_pattern(_ANY_TABLE).match(rows) is not None


# A name before a number, a range, a number or "+". "(3-5)" means 3, 4, 5; "(-1)" is no range.
_TOKEN = re.compile(
    r"(?P<name>[^\W\d_]+)[\s:：(（\[#]+(?=[-–]?\d)"
    r"|(?<![^\W_和及])(?P<first>\d+)\s*[-–—]\s*(?P<last>\d+)(?![^\W和及])"
    r"|(?<![^\W_和及])(?P<number>[-–]?\d+)(?![^\W和及])|(?P<more>\+)"
)
# The form of citations that `renumber_citations` writes, without the space before the citation:
# including the space would make the search twice as slow.
_PART = re.compile(r"(\w+) \((-?\d+(?:, -?\d+)*(?:, \+more)?)\)")
_OWN_CITATION = re.compile(rf"\[Data: ({_PART.pattern}(?:; {_PART.pattern})*)\]")
_SECTIONS = {name: tuple(text.split()) for name, text in _LISTS["sections"].items()}
_NO_SECTION = word_set(_LISTS["no_section"])
# Maximum length of a range of rows. Of a longer range, only the two ends are cited.
_MAX_RANGE = 50


def cited_rows(text: str) -> dict[str, set[int]]:
    """Return the row numbers that a text cites, by section."""
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
        if is_shown or not _may_be_prose(citation, parts):
            yield *citation.span(), list(dict.fromkeys(rows))


def check_citations(text: str, shown: ShownRows) -> tuple[str, int]:
    """Remove numbers that are not in `shown` from citations; return the text and their count."""
    return renumber_citations(
        text, lambda section, number: number if number in shown.get(section, ()) else None
    )


def renumber_citations(text: str, number_of: NumberOf) -> tuple[str, int]:
    """Renumber the citations in a text; return the text and the count of removed numbers."""
    pieces: list[str] = []
    n_removed = start = 0
    for citation in _match_citations(text):
        parts = _parse_sections(citation)
        written, n_unknown = _write_citation(parts, number_of)
        if written or not _may_be_prose(citation, parts):
            n_removed += n_unknown
            pieces += text[start : citation.start()], written
            start = citation.end()
    return "".join([*pieces, text[start:]]).strip(), n_removed


def _write_citation(parts: Iterable[CitedSection], number_of: NumberOf) -> tuple[str, int]:
    """Format a citation with new numbers after a space, and count the removed numbers."""
    written, n_removed = [], 0
    for section, numbers, has_more in parts:
        found = [number_of(section, number) for number in numbers]
        kept = [str(number) for number in found if number is not None]
        n_removed += len(numbers) - len(kept)
        if kept:
            written.append(f"{section} ({', '.join([*kept, *['+more'] * has_more])})")
    return f" [Data: {'; '.join(written)}]" if written else "", n_removed


def renumber_written(text: str, number_of: NumberOf) -> str:
    """Renumber citations that `renumber_citations` wrote; this is a hundred times faster."""
    if "[Data: " not in text:
        return text.strip()
    pieces: list[str] = []
    start = 0
    for citation in _OWN_CITATION.finditer(text):
        parts = [
            (part[1], list(map(int, part[2].removesuffix(", +more").split(", "))), "+" in part[2])
            for part in _PART.finditer(citation[1])
        ]
        written, _ = _write_citation(parts, number_of)
        pieces += text[start : citation.start()].removesuffix(" "), written
        start = citation.end()
    return "".join([*pieces, text[start:]]).strip()


def _parse_sections(citation: re.Match[str]) -> list[CitedSection]:
    """Parse the sections of a citation. Numbers without a section are numbers of sources."""
    forms = ("data", "square", "strict", "table", "unclosed", "bare", "listed")
    rows = next((citation[form] for form in forms if citation[form]), "")
    parts: list[tuple[str, dict[int, None], bool]] = []
    section = "Sources"
    for token in _TOKEN.finditer(rows):
        if token["name"]:
            name = token["name"].lower()
            if name not in _NO_SECTION:
                # Map the name to a section: "entity" means Entities.
                section = next(
                    (s for s, starts in _SECTIONS.items() if name.startswith(starts)), name
                )
            continue
        if not parts or parts[-1][0] != section:
            parts.append((section, {}, False))
        numbers = parts[-1][1]
        if token["more"]:
            parts[-1] = (section, numbers, True)
        elif token["number"]:
            numbers[_parse_number(token["number"])] = None
        else:
            first, last = _parse_number(token["first"]), _parse_number(token["last"])
            is_range = 0 <= last - first <= _MAX_RANGE
            numbers.update(dict.fromkeys(range(first, last + 1) if is_range else (first, last)))
    return [(name, list(numbers), has_more) for name, numbers, has_more in parts]


def _parse_number(digits: str) -> int:
    """Parse an integer. Only the first 18 characters count."""
    return int(digits.replace("–", "-")[:18])

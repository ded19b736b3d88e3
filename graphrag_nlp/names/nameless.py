"""Parts of a text that are not read for names: bylines, credits, code and addresses.

The names in them say who wrote or published a text, not what the text is about.
"""

import re
from collections.abc import Iterator

from graphrag_nlp.names.known_names import is_known_name
from graphrag_nlp.text.languages import read_lists
from graphrag_nlp.text.ranges import Range, merge_ranges


def _portfolio_pattern(opening: str, joint: str, fields: str) -> str:
    """Return a regular expression for a minister and the fields behind: ministre des Transports."""
    field = f"(?:{'|'.join(fields.split())})\\b"
    return f"{opening}{field}(?:{joint}{field})*"


_LISTS = read_lists("graphrag_nlp/names/data/nameless")
_PATTERNS = [re.compile(pattern) for pattern in _LISTS.values() if isinstance(pattern, str)]
_PATTERNS += [re.compile(_portfolio_pattern(**parts)) for parts in _LISTS["portfolios"].values()]
_SECTION_TITLE, _SECTION = (re.compile(_LISTS["section_title"][key]) for key in ("title", "before"))
# Maximum number of characters of the word and the number before the first full stop.
_MAX_SECTION_CHARS = 20
# A term that a contract defines: (the "Landlord"). Its occurrences are no names, unless it is a
# part of the name before it: Brookline Properties LLC ("Brookline").
_DEFINED_TERM = re.compile(
    r"\([^()\"“”„«»]{0,25}[\"“„«] ?([^\W\d_a-z][^\W\d_]+(?: [^\W\d_]+){0,2}) ?[\"”“»]"
    r"[^()\"]{0,25}\)"
)
# A French contract: ", ci-après la Salariée", "ci-après dénommé « le Preneur »". The list behind
# "voir ci-après la Loire" has no comma or bracket before it.
_FRENCH_TERM = re.compile(
    r"i-après(?:,? (?:dénommé|désigné|appelé)e?s?,? (?:[«\"“] ?)?|,? [«\"“] ?"
    r"|(?:(?<=[,(] ci-après)|(?<=\(ci-après)),? )"
    r"(?:[Ll][ea]s? |[Ll]['’])([^\W\d_a-zà-ÿ]\w+)"
)
# An article at the start of a sentence, at which a span may begin.
_ARTICLE = re.compile(r"\b(?:(?:The|L[ae]s?|El|Los) |L['’])$")
_CHARS_BEFORE_TERM = 80
_MAIL_ADDRESS = re.compile(r"\b[\w.+-]+@[\w-]+\.\w+")


def find_nameless_ranges(text: str) -> list[Range]:
    """Return the parts of a text without names, in order and without overlaps."""
    lines = f"\n{text}"
    # A range may begin at the line break before its first line.
    found = [
        (match.start() - 1, match.end() - 1)
        for pattern in _PATTERNS
        for match in pattern.finditer(lines)
        if "label" not in pattern.groupindex or not is_known_name(match["label"])
    ]
    if "@" in text:
        found += [match.span() for match in _MAIL_ADDRESS.finditer(text)]
    for match in _SECTION_TITLE.finditer(text):
        start = max(0, match.start() - _MAX_SECTION_CHARS)
        if section := _SECTION.search(text, start, match.start()):
            found.append((section.start(), match.end()))
    found += _find_defined_terms(text)
    return merge_ranges(found)


def _find_defined_terms(text: str) -> Iterator[Range]:
    terms = {
        match[1]
        for match in _DEFINED_TERM.finditer(text)
        if match[1] not in text[max(0, match.start() - _CHARS_BEFORE_TERM) : match.start()]
        and not any(word.isupper() for word in match[1].split())
    }
    if "i-après" in text:
        terms.update(match[1] for match in _FRENCH_TERM.finditer(text))
    for term in terms:
        if is_known_name(term):
            continue  # a country may be a party to a contract
        for match in re.finditer(rf"\b{re.escape(term)}\b", text):
            article = _ARTICLE.search(text, max(0, match.start() - 4), match.start())
            yield (article or match).start(), match.end()

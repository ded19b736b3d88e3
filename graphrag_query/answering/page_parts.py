"""Parts of web pages beside sentences: links to other articles, addresses and buttons."""

import re
from dataclasses import replace
from pathlib import Path

from graphrag_nlp.text.languages import read_lists
from graphrag_nlp.text.standalone import find_edges
from graphrag_query.answering.extractive import Candidate

# Minimum number of words of a sentence without the parts of the page beside it.
MIN_WORDS_LEFT = 4
_PATTERNS = read_lists("page_parts", Path(__file__).parent)
# A link to another article, at the start of a sentence.
LINK = re.compile(f"(?i){_PATTERNS['links']}")
# A sentence behind a link has some words and a mark at its end.
_BEHIND_LINK = re.compile(
    rf"\S\s+\S+\s+(?=(?:{_PATTERNS['BEHIND_LINK']})(?:\s*\S+){{4}}.*[.!?…][\"”»]?$)", re.DOTALL
)
_ADDRESSES = re.compile(_PATTERNS["addresses"], re.DOTALL)


def cut_link(text: str) -> str:
    """Return a sentence without the link to another article before it.

    A link whose end is unknown stays.
    """
    link = LINK.match(text)
    end = _BEHIND_LINK.search(text, link.end()) if link else None
    return text[end.end() :] if end else text


def cut_page_parts(candidate: Candidate) -> Candidate:
    """Return a sentence without the parts of a web page before and behind it.

    A statement with a label stays as it is: somebody may say an address.
    """
    if candidate.label:
        return candidate
    text = cut_link(candidate.text)
    first, last = find_edges(text)
    start = len(candidate.text) - len(text) + first
    text = text[first:last]
    if found := _ADDRESSES.search(text):
        text = text[: found.start()]
    if len(text.split()) < MIN_WORDS_LEFT or text == candidate.text:
        return candidate
    first = candidate.start_char + start
    return replace(candidate, text=text, start_char=first, end_char=first + len(text))

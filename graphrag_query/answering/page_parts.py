"""Links to other articles in the sentences of web pages."""

import re
from pathlib import Path

from graphrag_nlp.text.languages import read_lists

_PATTERNS = read_lists("page_parts", Path(__file__).parent)
# A link to another article, at the start of a sentence.
LINK = re.compile(f"(?i){_PATTERNS['links']}")
# A sentence behind a link has some words and a mark at its end.
_BEHIND_LINK = re.compile(
    rf"\S\s+\S+\s+(?=(?:{_PATTERNS['BEHIND_LINK']})(?:\s*\S+){{4}}.*[.!?…][\"”»]?$)", re.DOTALL
)


def cut_link(text: str) -> str:
    """Return a sentence without the link to another article before it.

    A link whose end is unknown stays.
    """
    link = LINK.match(text)
    end = _BEHIND_LINK.search(text, link.end()) if link else None
    return text[end.end() :] if end else text

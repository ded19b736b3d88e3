"""Simulated replies of a model, for estimates of their length.

A simulated reply consists of sentences of the prompt, in its language: a model needs about as
many words to describe a sentence. The constants below set how much it contains.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import combinations
from typing import Any

from graphrag_index.llm.request import Request
from graphrag_index.text.sentences import split_sentences

Json = dict[str, Any]

# Longer sentences are lists and tables, which models shorten.
DESCRIPTION_WORDS = 40
# A sentence with more names is a list, and a list relates few of its members.
NAMES_RELATED = 4
RELATIONSHIP_TYPE_WORDS = 4
# Models stay somewhat below the default of `max_words`.
SUMMARY_WORDS = 120
# Findings of a report, and the length of each and of its heading.
FINDINGS, FINDING_WORDS, HEADING_WORDS = 5, 80, 12
# For replies in an unknown format, of a step of a user.
OTHER_WORDS, OTHER_RECORDS = 20, 3
# Recurring terms per sentence, in a script without capitals.
CASELESS_NAMES = 3

_UPPER = "".join(re.escape(chr(code)) for code in range(0x10000) if chr(code).isupper())
_WORD = rf"[{_UPPER}](?:[\w’'&.-]*\w)?"
NAME = re.compile(
    rf"\b{_WORD}(?: (?:(?:of|de|del|la|von|van|der|bin|al) )?{_WORD})*"
)  # fmt: skip
_YEAR = re.compile(r"(?<!\d)(?:1[5-9]|20)\d\d(?!\d)")
_CASELESS_WORD = re.compile(r"[^\W\d_]{2,}")
_ROW = re.compile(r"^\d+,(.+)$", re.MULTILINE)
_ITEM = re.compile(r"^- (.+)$", re.MULTILINE)


def simulate_reply(request: Request) -> Any:
    """Return a reply in the format of a request."""
    # A gleaning request gets an empty reply.
    is_first = len(request.messages) < 3
    text = request.messages[-1]["content"].partition("Passage:\n")
    simulate = _FORMATS.get(request.format.name)
    if simulate is None:
        return _of_schema(request.format.schema, _words(request.messages[-1]["content"]))
    return simulate((text[2] or text[0]) if is_first else "")


def _extraction(text: str) -> Json:
    entities: dict[str, Json] = {}
    links: dict[tuple[str, str], Json] = {}
    for sentence, names in sentences_with_names(text):
        description = _cut(sentence, DESCRIPTION_WORDS)
        for name in names:
            entities.setdefault(
                name, {"name": name, "type": "organization", "description": description}
            )
        for source, target in combinations(names[:NAMES_RELATED], 2):
            between = sentence.partition(source)[2].partition(target)[0].strip(" ,.;:")
            kind = _cut(between, RELATIONSHIP_TYPE_WORDS) or "is related to"
            links.setdefault(
                (source, target),
                {"source": source, "target": target, "type": kind, "description": description,
                 "strength": 5},
            )  # fmt: skip
    return {"entities": list(entities.values()), "relationships": list(links.values())}


def _claims(text: str) -> Json:
    """Return a claim for each sentence with a name and a year."""
    claims = []
    for sentence, names in sentences_with_names(text):
        years = _YEAR.findall(sentence)
        if names and years:
            claims.append(
                {
                    "subject": names[0],
                    "object": names[1] if len(names) > 1 else None,
                    "type": "dated event",
                    "status": "TRUE",
                    "start_date": years[0],
                    "end_date": years[-1],
                    "description": _cut(sentence, DESCRIPTION_WORDS),
                    "source_text": sentence,
                }
            )
    return {"claims": claims}


def _description(text: str) -> Json:
    items = dict.fromkeys(_ITEM.findall(text))
    return {"description": _cut(" ".join(items) or text, SUMMARY_WORDS)}


def _report(text: str) -> Json:
    rows = _ROW.findall(text)
    findings = [
        {
            "summary": _cut(row, HEADING_WORDS),
            "explanation": f"{_cut(row, FINDING_WORDS)} [Data: Relationships ({number})].",
        }
        for number, row in enumerate(rows[:FINDINGS])
    ]
    return {
        "title": " ".join(row.partition(",")[0] for row in rows[:2]),
        "summary": " ".join(finding["summary"] for finding in findings[:3]) or "Nothing.",
        "rating": 5.0,
        "rating_explanation": "It matters as much as others.",
        "findings": findings,
    }


def _same_entity(text: str) -> Json:
    """Answer no, as for most doubtful pairs."""
    return {"reason": _words(text), "same": False}


_FORMATS: Mapping[str, Callable[[str], Json]] = {
    "same_entity": _same_entity,
    "extraction": _extraction,
    "claims": _claims,
    "description": _description,
    "community_report": _report,
}


def sentences_with_names(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each sentence with its names, each once, in order."""
    terms: Counter[str] | None = None
    for start, end, _ in split_sentences(text):
        sentence = text[start:end]
        if sentence.upper() != sentence.lower():
            yield sentence, _names(sentence, text)
            continue
        if terms is None:
            terms = Counter(_caseless_terms(text))
        own = dict.fromkeys(term for term in _caseless_terms(sentence) if terms[term] > 1)
        yield sentence, sorted(own, key=lambda term: -terms[term])[:CASELESS_NAMES]


def _names(sentence: str, text: str) -> list[str]:
    names: dict[str, None] = {}
    for match in NAME.finditer(sentence):
        name = match[0]
        if match.start() == 0:
            # The first word of a sentence is no name if it occurs in lower case.
            first, _, rest = name.partition(" ")
            name = rest if f" {first.lower()} " in text else name
        if name:
            names[name] = None
    return list(names)


def _caseless_terms(text: str) -> Iterator[str]:
    """Yield the words of a text, or all pairs of letters in a script without spaces."""
    for match in _CASELESS_WORD.finditer(text):
        word = match[0]
        if len(word) <= 8 and ord(word[0]) < 0x2E80:
            yield word
        else:
            yield from (word[at : at + 2] for at in range(len(word) - 1))


def _of_schema(schema: Any, words: str) -> Any:
    """Return a value that fits a JSON Schema."""
    if not isinstance(schema, Mapping):
        return words
    if schema.get("enum"):
        return schema["enum"][0]
    kind = schema.get("type")
    match kind[0] if isinstance(kind, list) else kind:
        case "object":
            properties = schema.get("properties", {})
            return {name: _of_schema(part, words) for name, part in properties.items()}
        case "array":
            return [_of_schema(schema.get("items"), words) for _ in range(OTHER_RECORDS)]
        case "integer" | "number":
            return 1
        case "boolean":
            return True
        case "null":
            return None
    return words


def _words(text: str) -> str:
    return _cut(" ".join(text.split()), OTHER_WORDS)


def _cut(text: str, n_words: int) -> str:
    """Return the first words of a text; scripts without spaces are cut by letters."""
    words = text.split(" ")
    cut = " ".join(words[:n_words])
    return cut[: n_words * 12]

"""Claims in the replies of a model, and the position of their evidence in the text."""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from graphrag_index.extraction.reply_records import MAX_NAME_CHARS, REPLY_WORDS, clean_line
from graphrag_index.llm.request import ParsedReply, ReplyError, ReplyFormat, object_schema
from graphrag_nlp.text.normalize import title_key
from graphrag_nlp.text.sentences import find_quotation, split_sentences

# Parts of a quotation with fewer characters are not searched, because they may match anywhere.
MIN_QUOTED_CHARS = 12
_KEYS_OF_FIELD: dict[str, list[str]] = REPLY_WORDS["claims"]
_STATUSES = {word: status for status, words in REPLY_WORDS["statuses"].items() for word in words}
_QUOTE_MARKS = "\"'“”„«»‘’` "
_OMISSION_MARK = re.compile(r"\s*(?:\.\.\.|…|\[\.\.\.\]|##)\s*")


class Claim(NamedTuple):
    """A claim in a reply. Unknown values are empty strings."""

    subject: str
    object: str
    type: str
    status: str
    start_date: str
    end_date: str
    description: str
    source_text: str


# The JSON Schema of each field of a claim.
_SCHEMA_OF_FIELD = {
    **{name: {"type": "string"} for name in Claim._fields},
    **{name: {"type": ["string", "null"]} for name in ("object", "start_date", "end_date")},
    "status": {"type": "string", "enum": ["TRUE", "FALSE", "SUSPECTED"]},
}


def read_claims(data: Any) -> ParsedReply:
    """Parse the claims in a reply; accept other field names, and one claim without a list.

    Raises `ReplyError` if there is no list of claims, or no claim has a subject and a description.
    """
    if isinstance(data, Mapping):
        lists = (data.get(key) for key in REPLY_WORDS["claim_lists"])
        one = [data] if any(key in data for key in _KEYS_OF_FIELD["subject"]) else None
        data = next((value for value in lists if isinstance(value, list)), one)
    if not isinstance(data, list):
        raise ReplyError('it holds no list "claims"')
    claims = list(filter(None, map(_read_claim, data)))
    if data and not claims:
        raise ReplyError("none of its claims has a subject and a description")
    # Drop repeated claims: a model may repeat one claim many times.
    return ParsedReply(tuple(dict.fromkeys(claims)), len(data) - len(claims))


CLAIMS_FORMAT = ReplyFormat(
    "claims",
    object_schema({"claims": {"type": "array", "items": object_schema(_SCHEMA_OF_FIELD)}}),
    read_claims,
    REPLY_WORDS["instructions"]["claims"],
)


def _read_claim(record: object) -> Claim | None:
    if not isinstance(record, Mapping):
        return None
    values = {name: _first_known_value(record, keys) for name, keys in _KEYS_OF_FIELD.items()}
    ends = {name: values[name].strip(_QUOTE_MARKS) for name in ("subject", "object")}
    is_too_long = max(map(len, ends.values())) > MAX_NAME_CHARS
    if not ends["subject"] or not values["description"] or is_too_long:
        return None
    status = _STATUSES.get(values["status"].casefold(), "SUSPECTED")
    return Claim(**values | ends | {"status": status})


def _first_known_value(record: Mapping[str, object], keys: Sequence[str]) -> str:
    """Return the first value of the fields `keys` as one line of text; "" if all are missing."""
    for key in keys:
        value = record.get(key)
        if isinstance(value, list):
            value = " … ".join(part for part in value if isinstance(part, str))
        if isinstance(value, str | int | float):
            text = clean_line(str(value))
            if text.casefold() not in REPLY_WORDS["missing"]:
                return text
    return ""


def merge_claims(replies: Iterable[Sequence[Claim]]) -> tuple[Claim, ...]:
    """Merge the claims in all replies about one text unit, and keep each claim once."""
    claims: dict[tuple[str, ...], Claim] = {}
    for claim in chain.from_iterable(replies):
        key = tuple(map(title_key, (claim.subject, claim.object, claim.description)))
        claims.setdefault(key, claim)
    return tuple(claims.values())


def locate_evidence(claim: Claim, text: str) -> tuple[int, int] | None:
    """Return the span of a claim's evidence: the quotation, or the most similar sentence.

    The similarity is the share of common letter trigrams. Returns None if no sentence has a
    trigram in common with the claim.
    """
    quoted = claim.source_text.strip(_QUOTE_MARKS)
    for part in (quoted, *_OMISSION_MARK.split(quoted)):
        if len(part) >= MIN_QUOTED_CHARS or part == quoted:
            at = text.find(part) if part else -1
            if at >= 0:
                return at, at + len(part)
            if found := find_quotation(part, text):
                return found
    words = _letter_trigrams(" ".join((quoted, claim.subject, claim.object, claim.description)))
    best, best_share = None, 0.0
    for start, end, _ in split_sentences(text):
        own = _letter_trigrams(text[start:end])
        share = 2 * len(own & words) / max(1, len(own) + len(words))
        if share > best_share:
            best, best_share = (start, end), share
    return best


def _letter_trigrams(text: str) -> set[str]:
    """Return the letter trigrams of a text. Inflected forms of a word share most trigrams."""
    folded = title_key(text)
    return {folded[at : at + 3] for at in range(len(folded) - 2) if " " not in folded[at : at + 3]}

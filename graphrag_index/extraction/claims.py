"""Claims in the replies of a model, parsed tolerantly, each with its evidence in the text."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from graphrag_index.llm.request import ParsedReply, ReplyError, ReplyFormat, object_schema
from graphrag_index.text.normalize import title_key
from graphrag_index.text.sentences import find_quotation, split_sentences

# A longer name is a sentence.
MAX_NAME = 200
# Shorter parts of a quotation may match anywhere.
MIN_QUOTED = 12
_TEXT = {"type": "string"}
_MAYBE = {"type": ["string", "null"]}
_PROPERTIES = {
    "subject": _TEXT,
    "object": _MAYBE,
    "type": _TEXT,
    "status": {"type": "string", "enum": ["TRUE", "FALSE", "SUSPECTED"]},
    "start_date": _MAYBE,
    "end_date": _MAYBE,
    "description": _TEXT,
    "source_text": _TEXT,
}
SCHEMA = object_schema({"claims": {"type": "array", "items": object_schema(_PROPERTIES)}})
IN_WORDS = """\
Reply with one JSON object and nothing else, each claim on a line of its own:
{"claims": [
{"subject": "...", "object": "...", "type": "...", "status": "TRUE, FALSE or SUSPECTED", \
"start_date": "...", "end_date": "...", "description": "...", "source_text": "..."}
]}"""
# Names of fields, and of the list of claims, in replies.
_KEYS = {
    "subject": ("subject", "subject_id", "subject_name", "subject_entity", "entity"),
    "object": ("object", "object_id", "object_name", "object_entity"),
    "type": ("type", "claim_type", "category"),
    "status": ("status", "claim_status"),
    "start_date": ("start_date", "date", "claim_date"),
    "end_date": ("end_date", "date", "claim_date"),
    "description": ("description", "claim_description", "claim"),
    "source_text": ("source_text", "claim_source_text", "source", "quote", "evidence"),
}
_LISTS = ("claims", "covariates", "results", "items")
# Placeholders for missing values.
_NOTHING = frozenset(("", "-", "none", "null", "n/a", "unknown", "not specified", "unspecified"))
_TRUE = frozenset(("true", "confirmed", "verified", "yes"))
_FALSE = frozenset(("false", "refuted", "denied", "no"))
_QUOTES = "\"'“”„«»‘’` "
_GAP = re.compile(r"\s*(?:\.\.\.|…|\[\.\.\.\]|##)\s*")


class Claim(NamedTuple):
    """A claim in a reply; unknown values are empty."""

    subject: str
    object: str
    type: str
    status: str
    start_date: str
    end_date: str
    description: str
    source_text: str


def read_claims(data: Any) -> ParsedReply:
    """Parse the claims of a reply; drop records without subject or description.

    Raises
    ------
    ReplyError
        The reply has no list of claims.
    """
    if isinstance(data, Mapping):
        found = next((data[key] for key in _LISTS if isinstance(data.get(key), list)), None)
        if found is None and any(key in data for key in _KEYS["subject"]):
            found = [data]
        data = found
    if not isinstance(data, list):
        raise ReplyError('it holds no list "claims"')
    read = [_read_claim(record) for record in data]
    claims = [claim for claim in read if claim is not None]
    if read and not claims:
        raise ReplyError("none of its claims has a subject and a description")
    # Models in a loop repeat claims.
    return ParsedReply(tuple(dict.fromkeys(claims)), len(read) - len(claims))


CLAIMS_FORMAT = ReplyFormat("claims", SCHEMA, read_claims, IN_WORDS)


def _read_claim(record: object) -> Claim | None:
    if not isinstance(record, Mapping):
        return None
    values = {name: _first_value(record, keys) for name, keys in _KEYS.items()}
    for name in ("subject", "object"):
        values[name] = values[name].strip(_QUOTES)
    if not values["subject"] or not values["description"]:
        return None
    if max(len(values["subject"]), len(values["object"])) > MAX_NAME:
        return None
    status = values["status"].casefold()
    values["status"] = "TRUE" if status in _TRUE else "FALSE" if status in _FALSE else "SUSPECTED"
    return Claim(**values)


def _first_value(record: Mapping[str, object], keys: Sequence[str]) -> str:
    """Return the first field with a value, on one line."""
    for key in keys:
        value = record.get(key)
        if isinstance(value, list):
            value = " … ".join(part for part in value if isinstance(part, str))
        if isinstance(value, str | int | float):
            # Broken JSON may hold lone surrogates.
            text = " ".join(str(value).encode("utf-8", "replace").decode().split())
            if text.casefold() not in _NOTHING:
                return text
    return ""


def merge_claims(replies: Iterable[Sequence[Claim]]) -> tuple[Claim, ...]:
    """Merge the replies about one text unit; keep each claim once."""
    claims: dict[tuple[str, str, str], Claim] = {}
    for reply in replies:
        for claim in reply:
            key = (title_key(claim.subject), title_key(claim.object), title_key(claim.description))
            claims.setdefault(key, claim)
    return tuple(claims.values())


def locate(claim: Claim, text: str) -> tuple[int, int] | None:
    """Return the span of the evidence of a claim: the quotation, or the most similar sentence.

    Similarity is the share of common trigrams of letters. None if no sentence has any.
    """
    quoted = claim.source_text.strip(_QUOTES)
    for part in (quoted, *_GAP.split(quoted)):
        if len(part) >= MIN_QUOTED or part == quoted:
            at = text.find(part) if part else -1
            if at >= 0:
                return at, at + len(part)
            found = find_quotation(part, text)
            if found is not None:
                return found
    words = _trigrams(" ".join((quoted, claim.subject, claim.object, claim.description)))
    best, best_share = None, 0.0
    for sentence in split_sentences(text):
        own = _trigrams(text[sentence.start : sentence.end])
        share = 2 * len(own & words) / max(1, len(own) + len(words))
        if share > best_share:
            best, best_share = (sentence.start, sentence.end), share
    return best


def _trigrams(text: str) -> set[str]:
    """Return the trigrams of letters, which forms of a word share in any script."""
    folded = title_key(text)
    return {folded[at : at + 3] for at in range(len(folded) - 2) if " " not in folded[at : at + 3]}

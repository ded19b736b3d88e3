"""From the text that a model writes to one whose every citation can be followed.

A model cites rows of its context: `[Data: Sources (12); Reports (3)]`, or `[12]` for a source.
What was not shown to it is removed and counted; what was is followed to a passage of a
document, and there to the sentence that says most of what the model says.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any

from graphrag_index.core.citations import Shown, find_citations
from graphrag_index.core.sentences import split_sentences
from graphrag_query.answer import Citation
from graphrag_query.knowledge_model import KnowledgeModel
from graphrag_query.sentence_ranking import Candidate, cite, content_words, stem

# What a model is told to begin with if the context holds no answer.
NO_RECORD = "NO_RECORD"
# Passages looked through for one citation of a row that many passages support.
MOST_PASSAGES = 40
# Reports cite reports on their parts, and these again.
DEEPEST = 4
# Words that must stand between quotation marks for them to be a quotation, and no title.
LEAST_QUOTED_WORDS = 4
# A citation is no longer than this, in characters: what has been open for longer is none.
LONGEST_CITATION = 300
_FOOTNOTE = re.compile(r"\[\^?(\d{1,9}(?:\s*[,;]\s*\^?\d{1,9})*)\](?![(:])")
_QUOTED = re.compile(r"[\"“„«”「]([^\"“„«»”「」\n]{8,400})[\"”“»」]")
_WORD = re.compile(r"[^\W_]+")
_CLAIM_CHARS = 600


class CitedText:
    """Takes a text in pieces and gives it back with its citations checked.

    `citations` are those so far, `n_removed` counts numbers that were not shown,
    `not_found` lists quotations that are not in the passages cited for them. With the style
    `footnotes` a citation becomes `[1]`, with `data` it stays as it is.
    """

    def __init__(self, model: KnowledgeModel, shown: Shown, style: str = "footnotes") -> None:
        self._model, self._shown, self._style = model, shown, style
        self.restart()

    def restart(self) -> None:
        """Forget what was taken so far."""
        self._held = self._claim = ""
        self._begins = True
        self._is_cited = False
        self._number_of: dict[tuple[str, int, int], int] = {}
        self.citations: list[Citation] = []
        self.n_removed = 0
        self.not_found: list[str] = []
        self.has_no_record = False

    @property
    def has_begun(self) -> bool:
        """Whether any of the text was taken."""
        return bool(self._held) or not self._begins

    def feed(self, piece: str, is_last: bool = False) -> str:
        """Take the next piece; return what of the text is certain by now."""
        self._held += piece
        if self._begins and not self._is_begun(is_last):
            return ""
        ready = len(self._held)
        opening = self._held.rfind("[")
        if not is_last and opening >= 0 and "]" not in self._held[opening:]:
            # A space before a citation goes with it.
            if len(self._held) - opening < LONGEST_CITATION:
                ready = len(self._held[:opening].rstrip())
        elif not is_last:
            # One may still follow, or a further one of several.
            ready = len(self._held.rstrip())
            if self._held[:ready].endswith("]"):
                ready = len(self._held[:opening].rstrip())
        text, self._held = self._held[:ready], self._held[ready:]
        return self._checked(text)

    def _is_begun(self, is_last: bool) -> bool:
        """Tell whether the text has begun; a mark that there is no record is taken off."""
        start = self._held.lstrip(" \n`*[").upper()
        if start.startswith(NO_RECORD):
            self.has_no_record = True
            rest = self._held.upper().index(NO_RECORD) + len(NO_RECORD)
            self._held = self._held[rest:].lstrip(" \n`*].:")
        elif NO_RECORD.startswith(start) and not is_last:
            return False
        self._begins = False
        return True

    def _checked(self, text: str) -> str:
        """Check the citations of a part of the text."""
        text = _FOOTNOTE.sub(self._as_data, text)
        parts, start = [], 0
        for first, last, rows in find_citations(text):
            parts.append(self._said(text[start:first]))
            parts.append(self._resolved(text[first:last], rows))
            self._is_cited, start = True, last
        parts.append(self._said(text[start:]))
        return "".join(parts)

    def _said(self, text: str) -> str:
        """Note what is claimed since the last citation; several in a row are for one claim."""
        if self._is_cited and text.strip():
            self._claim, self._is_cited = "", False
        self._claim = (self._claim + text)[-_CLAIM_CHARS:]
        return text

    def _as_data(self, footnote: re.Match[str]) -> str:
        """A footnote is taken for the number of a source."""
        if "Sources" not in self._shown:
            return footnote.group()
        numbers = ", ".join(re.findall(r"\d+", footnote[1]))
        return f"[Data: Sources ({numbers})]"

    def _resolved(self, written: str, rows: list[tuple[str, int]]) -> str:
        """Follow one citation, and write what stands for it in the text."""
        known = [(name, n) for name, n in rows if n in self._shown.get(name, ())]
        self.n_removed += len(rows) - len(known)
        if not known:
            return ""
        claim = self._claim.rpartition("\n\n")[2]
        passages = list(self._passages(known))
        numbers = []
        for cited_as, units in passages:
            best = best_sentence(claim, units)
            if best is not None:
                numbers.append(self._add(cited_as, *best))
        for quotation in _QUOTED.findall(claim):
            if len(quotation.split()) >= LEAST_QUOTED_WORDS and not any(
                _holds(unit["text"], quotation) for _, units in passages for unit in units
            ):
                self.not_found.append(quotation)
        if self._style == "footnotes":
            return " " + "".join(f"[{number}]" for number in dict.fromkeys(numbers))
        if len(known) == len(rows):
            return written
        by_name: dict[str, list[str]] = {}
        for name, number in known:
            by_name.setdefault(name, []).append(str(number))
        listed = "; ".join(f"{name} ({', '.join(numbers)})" for name, numbers in by_name.items())
        return f" [Data: {listed}]"

    def _passages(
        self, rows: list[tuple[str, int]]
    ) -> Iterator[tuple[str, list[Mapping[str, Any]]]]:
        """Give for each cited row the text units that it rests on."""
        for name, number in rows:
            found = units_behind(self._model, name, number, self._claim)
            units = self._model.text_units(found[:MOST_PASSAGES])
            yield f"{name} ({number})", [units[n] for n in found[:MOST_PASSAGES] if n in units]

    def _add(self, cited_as: str, candidate: Candidate, unit: Mapping[str, Any]) -> int:
        """Note a passage; return the number of its footnote."""
        place = (unit["document_id"], candidate.start_char, candidate.end_char)
        if place not in self._number_of:
            self._number_of[place] = len(self.citations) + 1
            self.citations.append(cite(len(self.citations) + 1, candidate, unit, cited_as))
        return self._number_of[place]


def units_behind(
    model: KnowledgeModel, name: str, number: int, claim: str, depth: int = 0
) -> list[int]:
    """Return the numbers of the text units that a row rests on, the likeliest first.

    A report rests on what it cites where it says what is claimed.
    """
    if name != "Reports":
        return model.text_units_behind(name, number)
    report = model.report(number)
    if report is None or depth > DEEPEST:
        return []
    words = _telling(claim)
    cited = []
    start = 0
    text = report["full_content"]
    for first, last, rows in find_citations(text):
        said = _telling(text[start:first].rpartition("\n\n")[2])
        cited.append((len(words & said) / (len(said) or 1) ** 0.5, -first, rows))
        start = last
    found: list[int] = []
    for _, _, rows in sorted(cited, key=lambda item: item[:2], reverse=True)[:3]:
        for row_name, row in rows:
            found += units_behind(model, row_name, row, claim, depth + 1)
    return list(dict.fromkeys(found))


def best_sentence(
    claim: str, units: list[Mapping[str, Any]]
) -> tuple[Candidate, Mapping[str, Any]] | None:
    """Return the sentence of some passages that says most of a claim; a whole passage if none
    says any of it, and None if there is no passage.
    """
    words = _telling(claim)
    quotations = [q for q in _QUOTED.findall(claim) if len(q.split()) >= LEAST_QUOTED_WORDS]
    best: tuple[float, Candidate, Mapping[str, Any]] | None = None
    for unit in units:
        text, offset = unit["text"], unit["start_char"]
        for sentence in split_sentences(text):
            said = text[sentence.start : sentence.end]
            telling = _telling(said)
            score = len(words & telling) / (len(telling) or 1) ** 0.25
            score += sum(_holds(said, quotation) for quotation in quotations) * 100
            if score > (best[0] if best else 0.0):
                place = (offset + sentence.start, offset + sentence.end)
                best = (score, Candidate(said, unit["human_readable_id"], *place, 0.0), unit)
    if best is not None:
        return best[1:]
    if not units:
        return None
    unit = units[0]
    start = unit["start_char"]
    whole = Candidate(
        unit["text"], unit["human_readable_id"], start, start + len(unit["text"]), 0.0
    )
    return whole, unit


def _telling(text: str) -> set[str]:
    """The words of a text by which it can be recognized."""
    words = set(content_words(text))
    return words or {stem(word) for word in _WORD.findall(text.lower())}


def _holds(text: str, quotation: str) -> bool:
    """Tell whether a text has some words, whatever the marks and spaces between them."""
    return _letters(quotation) in _letters(text)


def _letters(text: str) -> str:
    plain = unicodedata.normalize("NFKC", text).casefold()
    return "".join(c for c in plain if c.isalnum())

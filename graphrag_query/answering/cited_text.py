"""From the text that a model writes to one whose every citation can be followed.

A model cites rows of its context: `[Data: Sources (12); Reports (3)]`, or `[12]` for a source.
What was not shown to it is removed and counted; what was is followed to a passage of a
document, and there to the sentence that says most of what the model says.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any

from graphrag_index.text.citations import (
    LONGEST_CITATION,
    YEARS,
    Shown,
    cut_off_from,
    find_citations,
    unfinished_from,
)
from graphrag_index.text.sentences import split_sentences
from graphrag_query.answer import Citation
from graphrag_query.answering.sentence_ranking import Candidate, cite, content_words, stem
from graphrag_query.retrieval.index_store import KnowledgeModel

# What a model is told to begin with if the context holds no answer.
NO_RECORD = "NO_RECORD"
# Passages looked through for one citation of a row that many passages support.
MOST_PASSAGES = 40
# Reports cite reports on their parts, and these again.
DEEPEST = 4
# Words that must stand between quotation marks for them to be a quotation, and no title; and
# letters, where words are not parted by spaces.
LEAST_QUOTED_WORDS = 4
LEAST_QUOTED_LETTERS = 10
_NUMBER = r"\^?\d{1,9}"
_FOOTNOTE = re.compile(
    rf"[\[［【](?P<numbers>{_NUMBER}(?:\s*[,;、，；–-]\s*{_NUMBER})*)(?:†[^\[\]［］【】\n]{{0,80}})?[\]］】]"
    r"(?!\()"
)
_MARK = re.compile(rf"[^\S\n]*[*`]*{NO_RECORD}[*`]*")
# The beginning of such a mark at the end of a piece.
_MARK_BEGINS = re.compile(
    rf"[*`]*(?:{'|'.join(NO_RECORD[:n] for n in range(len(NO_RECORD), 0, -1))})?[*`]*$"
)
# A footnote at whose writing a model was cut off.
_UNFINISHED = re.compile(r"[\[［【]\s*\^?\d[^\[\]［］【】\n]*$")
# What may go with a citation that follows.
_BEFORE_CITATION = " \t\n*_`[［【({（｛"
_NO_SPACE_BEHIND = ("", "\n", "(", "（", "[", "【", "「", "“", "„", "«")
_FENCE = re.compile(r"^\s*```", re.MULTILINE)
_QUOTED = re.compile(
    r"\"([^\"\n]*)\"|[“„‟»«]([^“”„‟«»\n]*)[“”«»]|[「『]([^「」『』\n]*)[」』]"
    r"|(?<!\w)‘([^‘\n]*?)’(?!\w)"
)
# What a quotation leaves out or puts in: "He … was [in 1914] lost".
_LEFT_OUT = re.compile(r"…|\.\.\.|[\[(][^\])]*[\])]")
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
_WORD = re.compile(r"[^\W_]+")
# Of what stands before a citation, what is compared with sentences, and looked through for
# quotations.
_CLAIM_CHARS = 600
_QUOTING_CHARS = 4_000


class CitedText:
    """Takes a text in pieces and gives it back with its citations checked.

    `citations` are those so far, `n_removed` counts numbers that were not shown or lead to no
    passage, `not_found` lists quotations that are not in the passages cited for them. With the
    style `footnotes` a citation becomes `[1]`, with `data` it stays as it is.
    """

    def __init__(self, model: KnowledgeModel, shown: Shown, style: str = "footnotes") -> None:
        self._model, self._shown, self._style = model, shown, style
        # What a footnote numbers.
        self._footnotes = next(iter(shown)) if len(shown) == 1 else "Sources"
        self.restart()

    def restart(self) -> None:
        """Forget what was taken so far."""
        self._held = self._claim = self._taken = self._given = ""
        self._begins = True
        self._is_cited = self._lacks_record = False
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
        if is_last:
            self._end_citation()
        if self._begins and not self._is_begun(is_last):
            return ""
        ready = len(self._held) if is_last else self._certain()
        text, self._held = self._held[:ready], self._held[ready:]
        text = self._checked(text)
        if is_last and self._lacks_record and not self.citations:
            self.has_no_record = True
        return text

    def _end_citation(self) -> None:
        """Take off a citation in whose middle the text ends."""
        unfinished = _UNFINISHED.search(self._held)
        start = unfinished.start() if unfinished else cut_off_from(self._held)
        if start is None:
            return
        # Its last number may lack digits.
        self._held = self._held[:start]
        self.n_removed += 1

    def _certain(self) -> int:
        """Return how much of what is held no citation can reach any more."""
        held = self._held
        opening = max(map(held.rfind, "[［【"))
        is_open = opening >= 0 and not any(closing in held[opening:] for closing in "]］】")
        if is_open and len(held) - opening < LONGEST_CITATION:
            held = held[:opening]
        n_before = len(held) + 1
        # What is held back may be what a citation before it needs in order to end.
        while len(held) < n_before:
            n_before = len(held)
            held = held[: unfinished_from(held)].rstrip(_BEFORE_CITATION)
            if held.endswith(("]", "］", "】")):
                # What follows tells whether it is a citation, and it may be one of several.
                held = held[: max(0, *map(held.rfind, "[［【"))]
            elif mark := _MARK_BEGINS.search(held):
                held = held[: mark.start()]
        return len(held)

    def _is_begun(self, is_last: bool) -> bool:
        """Tell whether the text has begun; a mark that there is no record is taken off."""
        start = self._held.lstrip(" \n`*[").upper()
        if start.startswith(NO_RECORD):
            rest = self._held.upper().index(NO_RECORD) + len(NO_RECORD)
            said = self._held[rest:].lstrip(" \n`*].:")
            if not said and not is_last:
                return False
            self._held, self.has_no_record = said, True
        elif NO_RECORD.startswith(start) and not is_last:
            return False
        self._begins = False
        return True

    def _checked(self, text: str) -> str:
        """Check the citations of a part of the text."""
        before = self._taken
        self._taken += text
        text = _FOOTNOTE.sub(lambda footnote: self._as_data(footnote, before), text)
        text, n_marks = _MARK.subn("", text)
        self._lacks_record |= n_marks > 0
        parts, start = [], 0
        for first, last, rows in find_citations(text, self._shown):
            parts.append(self._said(text[start:first]))
            written = self._resolved(text[first:last], rows)
            # At the beginning of a line, or in brackets, a space would be seen.
            if ("".join(parts) or self._given)[-1:] in _NO_SPACE_BEHIND:
                written = written.lstrip(" ")
            parts.append(written)
            self._is_cited, start = True, last
        parts.append(self._said(text[start:]))
        checked = "".join(parts)
        self._given = checked or self._given
        return checked

    def _said(self, text: str) -> str:
        """Note what is claimed since the last citation; several in a row are for one claim."""
        if self._is_cited and text.strip():
            self._claim, self._is_cited = "", False
        self._claim = (self._claim + text)[-_QUOTING_CHARS:]
        return text

    def _as_data(self, footnote: re.Match[str], before: str) -> str:
        """Write a footnote as the citation that it is meant for; leave what is none."""
        before += footnote.string[: footnote.start()]
        behind = footnote.string[footnote.end() :]
        if cut_off_from(before[-LONGEST_CITATION:]) is not None:
            # "[Data: Sources [1, 2]]" is one citation.
            return footnote.group()
        line = before.rpartition("\n")[2]
        numbers = [int(digits) for digits in re.findall(r"\d+", footnote["numbers"])]
        shown = self._shown.get(self._footnotes, ())
        if not any(number in shown for number in numbers):
            defines = behind.startswith(":") and not line.strip()
            is_marked = "^" in footnote["numbers"]
            if defines or (not is_marked and self._are_years(numbers, behind)):
                return footnote.group()
        is_index = line.count("`") % 2 and re.search(r"[\w\])]$", line)
        if is_index or len(_FENCE.findall(before)) % 2:
            return footnote.group()
        return f"[Data: {self._footnotes} ({footnote['numbers']})]"

    def _are_years(self, numbers: list[int], behind: str) -> bool:
        """Tell whether numbers that were not shown are years: no row has them, or they stand
        within a sentence, where a citation seldom does.
        """
        if not all(number in YEARS for number in numbers):
            return False
        no_row = min(numbers) >= self._model.rows("text_unit_rows")
        return no_row or re.match(r"\s*[\w,]", behind) is not None

    def _resolved(self, written: str, rows: list[tuple[str, int]]) -> str:
        """Follow one citation, and write what stands for it in the text."""
        known = [(name, n) for name, n in rows if n in self._shown.get(name, ())]
        claim = self._claim.rpartition("\n\n")[2]
        passages = list(self._passages(known))
        numbers, kept = [], []
        for row, (cited_as, units) in zip(known, passages, strict=True):
            best = best_sentence(claim, units)
            if best is not None:
                numbers.append(self._add(cited_as, *best))
                kept.append(row)
        self.n_removed += len(rows) - len(kept)
        if not kept:
            return ""
        for quotation in quotations_in(claim):
            if not any(_holds(unit["text"], quotation) for _, units in passages for unit in units):
                self.not_found.append(quotation)
        if self._style == "footnotes":
            return " " + "".join(f"[{number}]" for number in dict.fromkeys(numbers))
        if len(kept) == len(rows) and written.startswith((" [Data:", "[Data:")):
            return written
        by_name: dict[str, list[str]] = {}
        for name, number in kept:
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
    words = _telling(claim[-_CLAIM_CHARS:])
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
    return list(dict.fromkeys(found)) or _about_members(model, number)


def _about_members(model: KnowledgeModel, community: int) -> list[int]:
    """Return the text units that tell about the entities of a community; for a report that
    cites nothing.
    """
    found: dict[int, None] = {}
    for entity in model.communities([community])["entities"].explode().drop_nulls():
        text_units, is_about = model.links.text_units_of(entity)
        found |= dict.fromkeys(text_units[is_about].tolist())
        if len(found) >= MOST_PASSAGES:
            break
    return list(found)


def quotations_in(text: str) -> list[str]:
    """Return what stands between quotation marks, without titles and single words."""
    found = ["".join(groups) for groups in _QUOTED.findall(text)]
    return [
        quotation
        for quotation in found
        if len(quotation.split()) >= LEAST_QUOTED_WORDS
        or len(_UNSPACED.findall(quotation)) >= LEAST_QUOTED_LETTERS
    ]


def best_sentence(
    claim: str, units: list[Mapping[str, Any]]
) -> tuple[Candidate, Mapping[str, Any]] | None:
    """Return the sentence of some passages that says most of a claim; a whole passage if none
    says any of it, and None if there is no passage.
    """
    words = _telling(claim[-_CLAIM_CHARS:])
    quotations = quotations_in(claim)
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
    """Tell whether a text has some words, whatever the marks and spaces between them, and what
    the quotation leaves out.
    """
    letters, place = _letters(text), 0
    for part in map(_letters, _LEFT_OUT.split(quotation)):
        found = letters.find(part, place)
        if found < 0:
            return False
        place = found + len(part)
    return True


def _letters(text: str) -> str:
    plain = unicodedata.normalize("NFKC", text).casefold()
    return "".join(c for c in plain if c.isalnum())

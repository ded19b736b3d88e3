"""Resolve the citations in a text that a model writes.

A model cites rows of its context: `[Data: Sources (12); Reports (3)]`, or `[12]` for a source.
Citations of rows that are not in the context are removed and counted. The others are resolved to
a passage of a document, and in it to the sentence most similar to the model's statement.
"""

import re

from graphrag_index.text.citations import (
    MAX_CITATION,
    YEARS,
    Shown,
    cut_off_from,
    find_citations,
    unfinished_from,
)
from graphrag_index.text.normalize import UNSPACED, letters, stem
from graphrag_index.text.sentences import split_sentences
from graphrag_query.answer import Citation
from graphrag_query.answering.extractive import Candidate, TextUnit, cite
from graphrag_query.question.question_words import WORD, content_words
from graphrag_query.retrieval.index_store import IndexStore

# The prompts tell models to begin so if the context holds no answer.
NO_RECORD = "NO_RECORD"
# Passages searched for one citation of a row that many passages support.
MAX_PASSAGES = 40
# Reports cite reports on their parts, and these again.
MAX_DEPTH = 4
# Shorter texts between quotation marks are titles; letters count in scripts without spaces.
MIN_QUOTED_WORDS = 4
MIN_QUOTED_LETTERS = 10
_NUMBER = r"\^?\d{1,9}"
_FOOTNOTE = re.compile(
    rf"[\[［【](?P<numbers>{_NUMBER}(?:\s*[,;、，；–-]\s*{_NUMBER})*)(?:†[^\[\]［］【】\n]{{0,80}})?[\]］】]"
    r"(?!\()"
)
_MARK = re.compile(rf"[^\S\n]*[*`]*{NO_RECORD}[*`]*")
# The beginning of this mark at the end of a piece.
_MARK_BEGINS = re.compile(
    rf"[*`]*(?:{'|'.join(NO_RECORD[:n] for n in range(len(NO_RECORD), 0, -1))})?[*`]*$"
)
# A footnote in which the model was cut off.
_UNFINISHED = re.compile(r"[\[［【]\s*\^?\d[^\[\]［］【】\n]*$")
# Characters that may belong to a citation that follows.
_BEFORE_CITATION = " \t\n*_`[［【({（｛"
_NO_SPACE_BEHIND = ("", "\n", "(", "（", "[", "【", "「", "“", "„", "«")
_FENCE = re.compile(r"^\s*```", re.MULTILINE)
_QUOTED = re.compile(
    r"\"([^\"\n]*)\"|[“„‟»«]([^“”„‟«»\n]*)[“”«»]|[「『]([^「」『』\n]*)[」』]"
    r"|(?<!\w)‘([^‘\n]*?)’(?!\w)"
)
# Omissions and insertions of a quotation: "He … was [in 1914] lost".
_CHANGED = re.compile(r"…|\.\.\.|[\[(][^\])]*[\])]")
_UNSPACED = re.compile(UNSPACED)
# Characters before a citation that are compared with sentences, and searched for quotations.
_CLAIM_CHARS = 600
_QUOTING_CHARS = 4_000


class CitedText:
    """Takes a text in pieces and returns it with its citations checked.

    `shown` are the rows of the context. `n_removed` counts numbers that were not shown or lead to
    no passage, `not_found` lists quotations that are not in the passages cited for them. With
    the style `footnotes` a citation becomes `[1]`, with `data` it stays as it is.
    """

    def __init__(self, index: IndexStore, shown: Shown, style: str = "footnotes") -> None:
        self._index, self._shown, self._style = index, shown, style
        # The section that footnotes refer to.
        self._footnotes = next(iter(shown)) if len(shown) == 1 else "Sources"
        self.restart()

    def restart(self) -> None:
        """Forget the text so far."""
        self._pending = self._claim = self._fed = self._returned = ""
        self._is_at_start = True
        self._is_cited = self._lacks_record = False
        self._number_of: dict[tuple[str, int, int], int] = {}
        self.citations: list[Citation] = []
        self.n_removed = 0
        self.not_found: list[str] = []
        self.has_no_record = False

    @property
    def has_begun(self) -> bool:
        """Whether any text was taken."""
        return bool(self._pending) or not self._is_at_start

    def feed(self, piece: str, is_last: bool = False) -> str:
        """Take the next piece; return the text that later pieces cannot change."""
        self._pending += piece
        if is_last:
            self._end_citation()
        if self._is_at_start and not self._check_start(is_last):
            return ""
        ready = len(self._pending) if is_last else self._final_length()
        text, self._pending = self._pending[:ready], self._pending[ready:]
        text = self._checked(text)
        if is_last and self._lacks_record and not self.citations:
            self.has_no_record = True
        return text

    def _end_citation(self) -> None:
        """Remove an unfinished citation at the end of the text."""
        unfinished = _UNFINISHED.search(self._pending)
        start = unfinished.start() if unfinished else cut_off_from(self._pending)
        if start is None:
            return
        # Its last number may lack digits.
        self._pending = self._pending[:start]
        self.n_removed += 1

    def _final_length(self) -> int:
        """Return the length of the held text that no citation can still change."""
        held = self._pending
        opening = max(map(held.rfind, "[［【"))
        is_open = opening >= 0 and not any(closing in held[opening:] for closing in "]］】")
        if is_open and len(held) - opening < MAX_CITATION:
            held = held[:opening]
        n_before = len(held) + 1
        # A citation may need the characters held back behind it in order to end.
        while len(held) < n_before:
            n_before = len(held)
            held = held[: unfinished_from(held)].rstrip(_BEFORE_CITATION)
            if held.endswith(("]", "］", "】")):
                # The next characters tell whether it is a citation, or one of several.
                held = held[: max(0, *map(held.rfind, "[［【"))]
            elif mark := _MARK_BEGINS.search(held):
                held = held[: mark.start()]
        return len(held)

    def _check_start(self, is_last: bool) -> bool:
        """Tell whether the text has begun; remove a mark that there is no record."""
        start = self._pending.lstrip(" \n`*[").upper()
        if start.startswith(NO_RECORD):
            rest = self._pending.upper().index(NO_RECORD) + len(NO_RECORD)
            said = self._pending[rest:].lstrip(" \n`*].:")
            if not said and not is_last:
                return False
            self._pending, self.has_no_record = said, True
        elif NO_RECORD.startswith(start) and not is_last:
            return False
        self._is_at_start = False
        return True

    def _checked(self, text: str) -> str:
        """Check the citations of a part of the text."""
        before = self._fed
        self._fed += text
        text = _FOOTNOTE.sub(lambda footnote: self._as_data(footnote, before), text)
        text, n_marks = _MARK.subn("", text)
        self._lacks_record |= n_marks > 0
        parts, start = [], 0
        for first, last, rows in find_citations(text, self._shown):
            parts.append(self._collect_claim(text[start:first]))
            written = self._resolved(text[first:last], rows)
            # At the beginning of a line, or in brackets, a space would be seen.
            if ("".join(parts) or self._returned)[-1:] in _NO_SPACE_BEHIND:
                written = written.lstrip(" ")
            parts.append(written)
            self._is_cited, start = True, last
        parts.append(self._collect_claim(text[start:]))
        checked = "".join(parts)
        self._returned = checked or self._returned
        return checked

    def _collect_claim(self, text: str) -> str:
        """Collect the claim before a citation; citations in a row belong to one claim."""
        if self._is_cited and text.strip():
            self._claim, self._is_cited = "", False
        self._claim = (self._claim + text)[-_QUOTING_CHARS:]
        return text

    def _as_data(self, footnote: re.Match[str], before: str) -> str:
        """Write a footnote as a citation of its section; leave other brackets as they are."""
        before += footnote.string[: footnote.start()]
        behind = footnote.string[footnote.end() :]
        if cut_off_from(before[-MAX_CITATION:]) is not None:
            # "[Data: Sources [1, 2]]" is one citation.
            return footnote.group()
        line = before.rpartition("\n")[2]
        numbers = [int(digits) for digits in re.findall(r"\d+", footnote["numbers"])]
        shown = self._shown.get(self._footnotes, ())
        if not any(number in shown for number in numbers):
            defines = behind.startswith(":") and not line.strip()
            is_marked = "^" in footnote["numbers"]
            # Years have no row, or stand inside of a sentence, where citations are rare.
            no_row = min(numbers) >= self._index.rows("text_unit_rows")
            are_years = all(number in YEARS for number in numbers) and (
                no_row or re.match(r"\s*[\w,]", behind) is not None
            )
            if defines or (not is_marked and are_years):
                return footnote.group()
        is_index = line.count("`") % 2 and re.search(r"[\w\])]$", line)
        if is_index or len(_FENCE.findall(before)) % 2:
            return footnote.group()
        return f"[Data: {self._footnotes} ({footnote['numbers']})]"

    def _resolved(self, written: str, rows: list[tuple[str, int]]) -> str:
        """Resolve one citation, and return the text in its place."""
        known = [(name, n) for name, n in rows if n in self._shown.get(name, ())]
        claim = self._claim.rpartition("\n\n")[2]
        passages: list[TextUnit] = []
        numbers, kept = [], []
        for name, number in known:
            found = supporting_text_units(self._index, name, number, self._claim)[:MAX_PASSAGES]
            by_number = self._index.text_units(found)
            units = [by_number[n] for n in found if n in by_number]
            passages += units
            best = best_sentence(claim, units)
            if best is not None:
                numbers.append(self._add_passage(f"{name} ({number})", *best))
                kept.append((name, number))
        self.n_removed += len(rows) - len(kept)
        if not kept:
            return ""
        for quotation in quotations_in(claim):
            if not any(_holds(unit["text"], quotation) for unit in passages):
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

    def _add_passage(self, cited_as: str, candidate: Candidate, unit: TextUnit) -> int:
        """Add a passage if it is new; return the number of its footnote."""
        place = (unit["document_id"], candidate.start_char, candidate.end_char)
        if place not in self._number_of:
            self._number_of[place] = len(self.citations) + 1
            self.citations.append(cite(len(self.citations) + 1, candidate, unit, cited_as))
        return self._number_of[place]


def supporting_text_units(
    index: IndexStore, name: str, number: int, claim: str, depth: int = 0
) -> list[int]:
    """Return the text units that support a row, the likeliest first.

    For a report they are those that it cites in the statements most similar to the claim.
    """
    if name != "Reports":
        return index.text_units_behind(name, number)
    report = index.report(number)
    if report is None or depth > MAX_DEPTH:
        return []
    words = _stems(claim[-_CLAIM_CHARS:])
    cited = []
    start = 0
    text = report["full_content"]
    for first, last, rows in find_citations(text):
        said = _stems(text[start:first].rpartition("\n\n")[2])
        cited.append((len(words & said) / (len(said) or 1) ** 0.5, -first, rows))
        start = last
    found: list[int] = []
    for _, _, rows in sorted(cited, key=lambda item: item[:2], reverse=True)[:3]:
        for row_name, row in rows:
            found += supporting_text_units(index, row_name, row, claim, depth + 1)
    return list(dict.fromkeys(found)) or _about_members(index, number)


def _about_members(index: IndexStore, community: int) -> list[int]:
    """Return the text units about the members of a community, for a report without citations."""
    found: dict[int, None] = {}
    for entity in index.communities([community])["entities"].explode().drop_nulls():
        text_units, is_subject = index.links.text_units_of(entity)
        found |= dict.fromkeys(text_units[is_subject].tolist())
        if len(found) >= MAX_PASSAGES:
            break
    return list(found)


def quotations_in(text: str) -> list[str]:
    """Return the quotations in a text, without titles and single words."""
    found = ["".join(groups) for groups in _QUOTED.findall(text)]
    return [
        said
        for said in found
        if len(said.split()) >= MIN_QUOTED_WORDS
        or len(_UNSPACED.findall(said)) >= MIN_QUOTED_LETTERS
    ]


def best_sentence(claim: str, units: list[TextUnit]) -> tuple[Candidate, TextUnit] | None:
    """Return the sentence of some passages most similar to a claim; None without passages.

    If no sentence shares a word with it, that is the whole first passage.
    """
    if not units:
        return None
    words = _stems(claim[-_CLAIM_CHARS:])
    quotations = quotations_in(claim)
    best = Candidate.within(units[0], 0, len(units[0]["text"])), units[0]
    highest = 0.0
    for unit in units:
        for sentence in split_sentences(unit["text"]):
            said = unit["text"][sentence.start : sentence.end]
            stems = _stems(said)
            score = len(words & stems) / (len(stems) or 1) ** 0.25
            score += sum(_holds(said, quotation) for quotation in quotations) * 100
            if score > highest:
                highest = score
                best = Candidate.within(unit, sentence.start, sentence.end), unit
    return best


def _stems(text: str) -> set[str]:
    """Return the stems of the content words of a text; of all words if it has none."""
    words = set(content_words(text))
    return words or {stem(word) for word in WORD.findall(text.lower())}


def _holds(text: str, quotation: str) -> bool:
    """Tell whether a text holds a quotation, ignoring punctuation and marked omissions."""
    held, start = letters(text), 0
    for part in map(letters, _CHANGED.split(quotation)):
        found = held.find(part, start)
        if found < 0:
            return False
        start = found + len(part)
    return True

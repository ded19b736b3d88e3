"""Resolve the citations in a text that a model writes.

A model cites rows of its context: `[Data: Sources (12); Reports (3)]`, or `[12]` for a source.
Citations of rows that are not in the context are removed and counted. Any other citation is
resolved to a passage of a document: the sentence most similar to the model's statement.
"""

import re
from functools import lru_cache

from graphrag_nlp.text.citations import (
    MAX_CITATION_CHARACTERS,
    POSSIBLE_YEARS,
    ShownRows,
    find_citations,
    find_cut_off_citation,
    find_unfinished_citation,
)
from graphrag_nlp.text.normalize import UNSPACED, letters, stem_word
from graphrag_nlp.text.sentences import split_sentences
from graphrag_query.answer import Citation
from graphrag_query.answering.extractive import Candidate, TextUnit, add_citation
from graphrag_query.question.question_words import WORD, content_words
from graphrag_query.store.index_store import IndexStore

# Word at the start of a reply if the context contains no answer, as the prompts ask.
NO_RECORD = "NO_RECORD"
# Maximum number of passages that are searched for one citation.
MAX_PASSAGES = 40
# Maximum depth of reports that cite other reports.
MAX_NESTED_REPORTS = 4
# Minimum number of words of a quotation; shorter texts in quotation marks are titles.
MIN_QUOTED_WORDS = 4
# Minimum number of letters of a quotation in scripts without spaces.
MIN_QUOTED_LETTERS = 10
_FOOTNOTE_NUMBER = r"\^?\d{1,9}"
_FOOTNOTE = re.compile(
    rf"[\[［【](?P<numbers>{_FOOTNOTE_NUMBER}(?:\s*[,;、，；–-]\s*{_FOOTNOTE_NUMBER})*)(?:†[^\[\]［］【】\n]{{0,80}})?[\]］】]"
    r"(?!\()"
)
_NO_RECORD_MARK = re.compile(rf"[^\S\n]*[*`]*{NO_RECORD}[*`]*")
# A beginning of `NO_RECORD` at the end of a piece of text.
_NO_RECORD_BEGINNING = re.compile(
    rf"[*`]*(?:{'|'.join(NO_RECORD[:n] for n in range(len(NO_RECORD), 0, -1))})?[*`]*$"
)
# A footnote without its closing bracket, because the model was cut off.
_UNFINISHED_FOOTNOTE = re.compile(r"[\[［【]\s*\^?\d[^\[\]［］【】\n]*$")
# Characters at the end of a piece that may belong to the next citation.
_CHARS_BEFORE_CITATION = " \t\n*_`[［【({（｛"
_NO_SPACE_AFTER = ("", "\n", "(", "（", "[", "【", "「", "“", "„", "«")
_CODE_FENCE = re.compile(r"^\s*```", re.MULTILINE)
_QUOTED_TEXT = re.compile(
    r"\"([^\"\n]*)\"|[“„‟»«]([^“”„‟«»\n]*)[“”«»]|[「『]([^「」『』\n]*)[」』]"
    r"|(?<!\w)‘([^‘\n]*?)’(?!\w)"
)
# Omissions and insertions in a quotation: "He … was [in 1914] lost".
_MARKED_OMISSION = re.compile(r"…|\.\.\.|[\[(][^\])]*[\])]")
_UNSPACED_LETTER = re.compile(UNSPACED)
# Maximum characters before a citation that are compared with sentences.
_MAX_CLAIM_CHARS = 600
# Maximum characters before a citation that are searched for quotations.
_MAX_QUOTING_CHARS = 4_000


class CitedText:
    """A text that arrives in pieces, and the citations in it.

    `shown` has the rows of the context. `n_removed_citations` counts the citations of rows that
    are not in the context or have no passage. `missing_quotations` has the quotations that are
    not in the cited passages. With the style `footnotes`, a citation is written as `[1]`; with
    the style `data`, it is not changed.
    """

    def __init__(self, index: IndexStore, shown: ShownRows, style: str = "footnotes") -> None:
        self._index, self._shown, self._style = index, shown, style
        # The section of the context that footnotes such as "[12]" refer to.
        self._footnotes = next(iter(shown)) if len(shown) == 1 else "Sources"
        self.restart()

    def restart(self) -> None:
        """Discard the text so far and start again."""
        self._pending = self._claim = self._fed = self._returned = ""
        self._is_at_start = True
        self._is_cited = self._lacks_record = False
        self.citations: list[Citation] = []
        self.n_removed_citations = 0
        self.missing_quotations: list[str] = []
        self.has_no_record = False

    @property
    def has_begun(self) -> bool:
        """Whether the text has any characters so far."""
        return bool(self._pending) or not self._is_at_start

    def add_piece(self, piece: str, is_last: bool = False) -> str:
        """Add a piece of text, and return the checked text that later pieces cannot change."""
        self._pending += piece
        if is_last:
            self._remove_unfinished_citation()
        if self._is_at_start and not self._check_for_no_record(is_last):
            return ""
        ready = len(self._pending) if is_last else self._length_of_final_text()
        text, self._pending = self._pending[:ready], self._pending[ready:]
        text = self._check_citations(text)
        if is_last and self._lacks_record and not self.citations:
            self.has_no_record = True
        return text

    def _remove_unfinished_citation(self) -> None:
        """Remove an unfinished citation at the end of the text."""
        unfinished = _UNFINISHED_FOOTNOTE.search(self._pending)
        start = unfinished.start() if unfinished else find_cut_off_citation(self._pending)
        if start is None:
            return
        # Remove the whole citation, because its last number may be incomplete.
        self._pending = self._pending[:start]
        self.n_removed_citations += 1

    def _length_of_final_text(self) -> int:
        """Return the length of the pending text that no later citation can change."""
        held = self._pending
        opening = max(map(held.rfind, "[［【"))
        is_open = opening >= 0 and not any(closing in held[opening:] for closing in "]］】")
        if is_open and len(held) - opening < MAX_CITATION_CHARACTERS:
            held = held[:opening]
        n_before = len(held) + 1
        # Characters that were removed from the end may belong to the citation before them: repeat.
        while len(held) < n_before:
            n_before = len(held)
            held = held[: find_unfinished_citation(held)].rstrip(_CHARS_BEFORE_CITATION)
            if held.endswith(("]", "］", "】")):
                # Only the next characters show whether the brackets are a complete citation.
                held = held[: max(0, *map(held.rfind, "[［【"))]
            elif mark := _NO_RECORD_BEGINNING.search(held):
                held = held[: mark.start()]
        return len(held)

    def _check_for_no_record(self, is_last: bool) -> bool:
        """Return whether the text has started. A `NO_RECORD` at its start is removed."""
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

    def _check_citations(self, text: str) -> str:
        """Check the citations of a part of the text."""
        before = self._fed
        self._fed += text
        text = _FOOTNOTE.sub(lambda footnote: self._rewrite_footnote(footnote, before), text)
        text, n_marks = _NO_RECORD_MARK.subn("", text)
        self._lacks_record |= n_marks > 0
        parts, start = [], 0
        for first, last, rows in find_citations(text, self._shown):
            parts.append(self._extend_claim(text[start:first]))
            written = self._resolve_citation(text[first:last], rows)
            # Remove the space before a citation at the start of a line or after an opening bracket.
            if ("".join(parts) or self._returned)[-1:] in _NO_SPACE_AFTER:
                written = written.lstrip(" ")
            parts.append(written)
            self._is_cited, start = True, last
        parts.append(self._extend_claim(text[start:]))
        checked = "".join(parts)
        self._returned = checked or self._returned
        return checked

    def _extend_claim(self, text: str) -> str:
        """Add a text to the claim before a citation. Adjacent citations have the same claim."""
        if self._is_cited and text.strip():
            self._claim, self._is_cited = "", False
        self._claim = (self._claim + text)[-_MAX_QUOTING_CHARS:]
        return text

    def _rewrite_footnote(self, footnote: re.Match[str], before: str) -> str:
        """Rewrite a footnote as a `[Data: …]` citation; do not change other brackets."""
        before += footnote.string[: footnote.start()]
        behind = footnote.string[footnote.end() :]
        if find_cut_off_citation(before[-MAX_CITATION_CHARACTERS:]) is not None:
            # Keep brackets inside a citation: "[Data: Sources [1, 2]]" is one citation.
            return footnote.group()
        line = before.rpartition("\n")[2]
        numbers = [int(digits) for digits in re.findall(r"\d+", footnote["numbers"])]
        shown = self._shown.get(self._footnotes, ())
        if not any(number in shown for number in numbers):
            defines = behind.startswith(":") and not line.strip()
            is_marked = "^" in footnote["numbers"]
            # A number is a year if there is no row with this number, or if the sentence goes on
            # after the brackets: there, citations are rare.
            no_row = min(numbers) >= self._index.n_rows("text_unit_rows")
            are_years = all(number in POSSIBLE_YEARS for number in numbers) and (
                no_row or re.match(r"\s*[\w,]", behind) is not None
            )
            if defines or (not is_marked and are_years):
                return footnote.group()
        is_index = line.count("`") % 2 and re.search(r"[\w\])]$", line)
        if is_index or len(_CODE_FENCE.findall(before)) % 2:
            return footnote.group()
        return f"[Data: {self._footnotes} ({footnote['numbers']})]"

    def _resolve_citation(self, written: str, rows: list[tuple[str, int]]) -> str:
        """Resolve one citation, and return the text that replaces it."""
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
                numbers.append(add_citation(self.citations, *best, f"{name} ({number})"))
                kept.append((name, number))
        self.n_removed_citations += len(rows) - len(kept)
        if not kept:
            return ""
        for quotation in find_quotations(claim):
            if not any(_contains_quotation(unit["text"], quotation) for unit in passages):
                self.missing_quotations.append(quotation)
        if self._style == "footnotes":
            return " " + "".join(f"[{number}]" for number in dict.fromkeys(numbers))
        if len(kept) == len(rows) and written.startswith((" [Data:", "[Data:")):
            return written
        by_name: dict[str, list[str]] = {}
        for name, number in kept:
            by_name.setdefault(name, []).append(str(number))
        listed = "; ".join(f"{name} ({', '.join(numbers)})" for name, numbers in by_name.items())
        return f" [Data: {listed}]"


def supporting_text_units(
    index: IndexStore, name: str, number: int, claim: str, depth: int = 0
) -> list[int]:
    """Return the numbers of the text units that support a row, the most likely first.

    For a report, the text units come from the citations in its statements that are most similar
    to the claim.
    """
    if name != "Reports":
        return index.text_units_behind(name, number)
    report = index.report(number)
    if report is None or depth > MAX_NESTED_REPORTS:
        return []
    words = _content_stems(claim[-_MAX_CLAIM_CHARS:])
    cited = []
    start = 0
    text = report["full_content"]
    for first, last, rows in find_citations(text):
        said = _content_stems(text[start:first].rpartition("\n\n")[2])
        cited.append((len(words & said) / (len(said) or 1) ** 0.5, -first, rows))
        start = last
    found: list[int] = []
    for _, _, rows in sorted(cited, key=lambda item: item[:2], reverse=True)[:3]:
        for row_name, row in rows:
            found += supporting_text_units(index, row_name, row, claim, depth + 1)
    return list(dict.fromkeys(found)) or _text_units_about_members(index, number)


def _text_units_about_members(index: IndexStore, community: int) -> list[int]:
    """Return the text units that describe, or else name, the entities of a community.

    They replace the citations if a report has none.
    """
    found: dict[int, None] = {}
    for entity in index.communities([community])["entities"].explode().drop_nulls():
        text_units, is_subject = index.links.text_units_of(entity)
        about = text_units[is_subject] if is_subject.any() else text_units
        # An entity may be in most text units of a corpus.
        found |= dict.fromkeys(about[:MAX_PASSAGES].tolist())
        if len(found) >= MAX_PASSAGES:
            break
    return list(found)


def find_quotations(text: str) -> list[str]:
    """Return the quotations in a text, without titles and single words."""
    found = ["".join(groups) for groups in _QUOTED_TEXT.findall(text)]
    return [
        said
        for said in found
        if len(said.split()) >= MIN_QUOTED_WORDS
        or len(_UNSPACED_LETTER.findall(said)) >= MIN_QUOTED_LETTERS
    ]


def best_sentence(claim: str, units: list[TextUnit]) -> tuple[Candidate, TextUnit] | None:
    """Return the sentence that is most similar to a claim, and its text unit.

    If no sentence shares a word with the claim, return the whole first text unit. Returns None
    without text units.
    """
    if not units:
        return None
    words = _content_stems(claim[-_MAX_CLAIM_CHARS:])
    quotations = find_quotations(claim)
    best = Candidate.within(units[0], 0, len(units[0]["text"])), units[0]
    highest = 0.0
    for unit in units:
        for sentence in split_sentences(unit["text"]):
            said = unit["text"][sentence.start : sentence.end]
            stems = _content_stems(said)
            score = len(words & stems) / (len(stems) or 1) ** 0.25
            score += sum(_contains_quotation(said, quotation) for quotation in quotations) * 100
            if score > highest:
                highest = score
                best = Candidate.within(unit, sentence.start, sentence.end), unit
    return best


# The citations of an answer are compared with the sentences of the same text units.
@lru_cache(maxsize=4096)
def _content_stems(text: str) -> frozenset[str]:
    """Return the stems of the content words of a text, or of all words if it has none."""
    return frozenset(content_words(text) or map(stem_word, WORD.findall(text.lower())))


def _contains_quotation(text: str, quotation: str) -> bool:
    """Return whether a text contains a quotation, ignoring punctuation and marked omissions."""
    held, start = letters(text), 0
    for part in map(letters, _MARKED_OMISSION.split(quotation)):
        found = held.find(part, start)
        if found < 0:
            return False
        start = found + len(part)
    return True

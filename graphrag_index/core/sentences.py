"""Where sentences begin and end, by punctuation and layout, in any script.

Rules, not a model: full stops that end abbreviations, initials, ordinals and
numbers are told from those that end sentences; blank lines, headings, list
items and table rows end what stands before them.
"""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple


class Sentence(NamedTuple):
    """A sentence or another unit of layout, as offsets into its text."""

    start: int
    end: int
    # A whole sentence that can be quoted by itself; not a heading, list stub or table row.
    prose: bool


# Words (without their full stop, lower case) after which a full stop ends no sentence.
_ABBREVIATIONS = frozenset(
    # titles and names
    "mr mrs ms mx dr prof rev hon st ste sr jr messrs mme mlle gen col lt capt cpt cmdr adm maj "
    "sgt sen rep gov pres supt insp fr hr frl dipl ing mag ks abp bp płk gen por hab inż mgr śp "
    # reference and measure
    "vs etc eg e.g ie i.e cf viz al ca approx est no nos nr op vol vols pp ed eds fig figs sec ch "
    "art dept univ inc ltd co corp bros ave blvd rd mt ft sq a.m p.m a.d b.c u.s u.k u.n ph.d "
    "jan feb mar apr jun jul aug sept sep oct nov dec mon tue wed thu fri sat sun "
    # German
    "z.b d.h u.a o.ä bzw usw ggf evtl inkl zzgl sog vgl str abs bd hrsg jh jhd geb gest verh "
    "s.o s.u z.t u.s.w i.d.r "
    # Polish
    "np tzw itd itp ul al r w wg tj m.in n.e p.n.e ur zm dr pt zob por "
    # Romance languages
    "sra srta dna av avda núm pág págs ej p.ej pags vol sig n° m mm mgr éd env "
    # Russian
    "г гг им т.е т.д т.п др см ул".split()
)
_MONTHS_AND_AGES = frozenset(
    (
        "januar jänner februar märz april mai juni juli august september oktober november "
        "dezember jahrhundert jahrhunderts jahrhunderten jahrtausend klasse auflage"
    ).split()
)
_BOUNDARY = re.compile(
    r"""
      (?P<stop>[.!?…]+)["'”’»)\]*_]*(?P<space>\s+)   # a stop and a space
    | [。！？｡]+["'”’」』）》]*\s*                      # stops of scripts without spaces
    | [؟۔।॥።]+["'”’»)]*\s*                            # Arabic, Devanagari, Ethiopic
    | (?<![^\n])\#{1,6}[^\S\n][^\n]*\n\s*              # a heading, whole
    | \|[^\S\n]*\n\s*                                 # the end of a table row
    | \n[^\S\n]*\n\s*                                 # a blank line
    | \n(?=[^\S\n]*(?:\#{1,6}\s|[-*+•]\s|\d{1,3}[.)]\s|\|))   # a heading, list item or table row
    """,
    re.VERBOSE,
)
# The characters at which a boundary can begin: to look for these first is much quicker.
_MARK = re.compile(r"[.!?…。！？｡؟۔।॥።\n#|]")
# A capital that is no initial: what it labels, or who bears the number.
_LABEL = re.compile(
    r"°[CF]$"
    r"|\b(?:[Vv]itamins?|[Hh]epatitis|[Pp]lan|[Tt]ype|[Gg]roup|[Cc]lass|[Gg]rade|[Pp]art|[Ss]ection"
    r"|[Aa]ppendix|[Ff]igure|[Tt]able|[Pp]oint|[Cc]ategory|[Vv]olume|[Aa]ct|[Ww]ar) [A-Z]$"
    r"|\b(?:King|Queen|Pope|Emperor|Tsar|Prince|Kaiser|König|Königin|Papst|Zar|Herzog|Graf|Król"
    r"|Papież|Cesarz|Książę|Roi|Pape|Rey|Papa|Re) (?:\w+ ){1,2}[IVX]$"
)
_LAST_WORD = re.compile(r"[^\s(\[\"“„«]+$")
_NEXT_WORD = re.compile(r"[\"'“„‘«(\[*_]*(\w+)")
_MARKER = re.compile(r"(?:\#{1,6}\s+|[-*+•]\s+|\d{1,3}[.)]\s+|>\s+)+")
_TERMINAL = re.compile(r"[.!?…。！？｡؟۔।॥።][\"'”’»)\]」』）》*_]*$")


def split_sentences(text: str, starts: Sequence[int] | None = None) -> list[Sentence]:
    """Cut a text into its sentences, without the space and the list marks between them.

    They are in order and do not overlap; every character that is not space or
    a mark of layout lies in one of them. `starts` are those of `segment_starts`,
    if they are known already.
    """
    sentences = []
    starts = segment_starts(text) if starts is None else starts
    for start, end in pairwise([*starts, len(text)]):
        segment = text[start:end].rstrip()
        if not segment:
            continue
        end = start + len(segment)
        if not segment[0].isupper():
            stripped = segment.lstrip()
            start = end - len(stripped)
            marker = _MARKER.match(stripped)
            if marker and marker.end() < len(stripped):
                start += marker.end()
            if stripped[0] == "#":
                sentences.append(Sentence(start, end, False))
                continue
        sentences.append(Sentence(start, end, _is_prose(text, start, end)))
    return sentences


def segment_starts(text: str) -> list[int]:
    """Return where segments of a text begin: sentences with their marks and the space after.

    The first is 0; an empty text has none. Together the segments are the text.
    """
    starts = [0] if text else []
    reached = 0
    for mark in _MARK.finditer(text):
        stop = mark.start()
        if stop < reached:
            continue
        if text[stop] == "." and _plainly_ends_sentence(text, stop):
            starts.append(stop + 2)
            continue
        match = _BOUNDARY.match(text, stop)
        if match is None:
            continue
        reached = match.end()
        if match["stop"] is not None and not _ends_sentence(text, match):
            continue
        if reached < len(text):
            starts.append(reached)
    return starts


def _plainly_ends_sentence(text: str, stop: int) -> bool:
    """Tell the common case quickly: a word, its full stop, a space, a capital."""
    if text[stop + 1 : stop + 2] != " " or not text[stop + 2 : stop + 3].isupper():
        return False
    word = text[text.rfind(" ", 0, stop) + 1 : stop]
    return len(word) > 1 and word.isalpha() and word.lower() not in _ABBREVIATIONS


def _ends_sentence(text: str, match: re.Match[str]) -> bool:
    if "\n\n" in match["space"]:
        return True
    end = match.end()
    following = text[end : end + 1]
    if match["stop"] != ".":
        # "…" and "?!" may stand inside a sentence, which then goes on in lower case.
        return not following.islower()
    if following.islower():
        return False
    begin = match.start()
    word_match = _LAST_WORD.search(text, max(0, begin - 20), begin)
    word = word_match.group().lower() if word_match else ""
    if len(word) == 1 and word.isalpha():
        return text[begin - 1].isupper() and _is_no_initial(text, begin)
    if word in _ABBREVIATIONS:
        return False
    if word.isdigit() and len(word) <= 2:
        next_word = _NEXT_WORD.match(text, end)
        return not (next_word and next_word[1].lower() in _MONTHS_AND_AGES)
    return True


def _is_no_initial(text: str, begin: int) -> bool:
    """Tell whether the capital before `begin` is a pronoun, a label or a number: George V."""
    before = text[max(0, begin - 60) : begin]
    return before.endswith(" I") or _LABEL.search(before) is not None


def _is_prose(text: str, start: int, end: int) -> bool:
    """Tell whole sentences from headings, stubs and rows of tables."""
    if end - start > 700:
        return False
    if text[end - 1] not in ".!?" and not _TERMINAL.search(text, max(start, end - 6), end):
        return False
    first = text[start]
    if first in "\"'“„‘«([*_":
        first = next((c for c in text[start : start + 5] if c.isalnum()), first)
    if first.islower() or not first.isalnum() or "|" in text[start:end]:
        return False
    if text[end - 1] in "。！？｡":
        # Scripts without spaces say a sentence in few characters.
        return end - start >= 5
    return end - start >= 20 and text.count(" ", start, end) >= 3

"""Answers without a model: the sentences of text units that answer a question best."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING

from graphrag_index.schema.settings import searches
from graphrag_query.answer import Answer, Citation
from graphrag_query.answering.agents import find_agents, is_passive
from graphrag_query.answering.announced_lists import find_announced_list
from graphrag_query.answering.answer_ranking import rank_answers
from graphrag_query.answering.answer_spans import (
    FIT_OF_CLAUSE,
    find_answer_spans,
    may_give_reason,
)
from graphrag_query.answering.asked_words import AskedWords
from graphrag_query.answering.bridges import put_answer_before_bridge
from graphrag_query.answering.direct_answer import find_direct_answer
from graphrag_query.answering.direct_answer_words import DirectAnswer
from graphrag_query.answering.evidence import (
    keep_related,
    leave_out_unrelated,
    select_evidence,
)
from graphrag_query.answering.extractive import (
    FULL_WORD_COVERAGE,
    Candidate,
    RankedSentence,
    TextUnit,
    as_one_line,
    choose_distinct_sentences,
    cite_passage,
    is_sentence,
    split_into_candidates,
)
from graphrag_query.answering.further_sentences import (
    adds_nothing,
    cut_dateline,
    is_short_answer,
    is_table_row,
)
from graphrag_query.answering.list_answer import answer_with_list, find_types_of_names
from graphrag_query.answering.no_answer import answer_without_evidence
from graphrag_query.answering.page_parts import cut_page_parts
from graphrag_query.answering.reader_answer import find_reader_answer
from graphrag_query.answering.statements import find_openings
from graphrag_query.answering.subjects import begins_with_thing, refers_back
from graphrag_query.answering.table_rows import answer_from_rows
from graphrag_query.answering.unsaid_words import (
    choose_nearest,
    introduce_nearest,
    is_unclear,
    keep_about_names,
    says_everything,
    state_what_is_unsaid,
)
from graphrag_query.question.question import Question
from graphrag_query.question.question_words import content_words, split_joined_words

if TYPE_CHECKING:
    from graphrag_query.answer import Context

SentenceSearchSettings = (
    searches.LocalSearch | searches.BasicSearch | searches.DriftSearch | searches.LazySearch
)

# Maximum number of words of an answer of several sentences.
MAX_WORDS = 60
# Maximum number of words of a line with a label, such as a turn of a chat, or of two sentences,
# quoted as a whole.
MAX_WORDS_OF_LINE = 40
# Maximum number of sentences after an answer in a few words.
MAX_SUPPORT = 2
# Kinds of answers of which there may be several.
KINDS_OF_LISTS = frozenset(("other", "person", "place", "organization", "title"))
# Maximum difference between the scores of the best sentence and another one in the answer.
MAX_SCORE_GAP = 3.5


def answer_from_sentences(
    question: Question,
    text_units: Mapping[int, TextUnit],
    priors: Mapping[int, float],
    settings: SentenceSearchSettings,
    context: "Context",
    *,
    named: Sequence[str] = (),
    groups: Mapping[int, int] | None = None,
) -> Answer:
    """Answer a question with the sentences that answer it best, each with its citation.

    The outcome is `no_evidence` if the evidence is too weak. `priors` maps the number of a text
    unit to its score. `named` has titles and aliases of the entities that the question names.
    `groups` maps the number of a text unit to its group: sentences of a group are put together,
    and the group of the best sentence comes first.
    """
    if answer := answer_from_rows(question, text_units, context):
        return answer
    openings = find_openings(question.index, text_units.values())
    types = find_types_of_names(question.index, text_units) if question.wanted.wants_name else {}
    candidates = split_into_candidates(text_units.values(), priors, openings)
    said = _keep_sentences(question, candidates, text_units)
    ranked = rank_answers(question, said, types)
    evidence = select_evidence(question, ranked, named, settings.min_similarity)
    evidence = evidence or _rank_lines(question, candidates, types)
    if not evidence:
        return answer_without_evidence(question, context)
    if answer := answer_with_list(question, said, text_units, context):
        return answer
    evidence = list(keep_related(question, evidence))
    if not evidence:
        return answer_without_evidence(question, context)
    direct = find_direct_answer(question, evidence, candidates, types)
    items = [] if direct else _find_list(question, evidence[0].candidate, candidates)
    most = min(settings.max_sentences, MAX_SUPPORT) if direct else settings.max_sentences
    chosen = list(dict.fromkeys(direct.evidence)) if direct else items
    about = evidence if direct or items else keep_about_names(question, evidence)
    chosen = chosen or _fit_words(question, about, candidates, text_units, most)
    # No one span says what takes several sentences.
    takes_several = bool(items) or (direct is not None and len(direct.evidence) > 1)
    read = None if takes_several else find_reader_answer(question, candidates, text_units, priors)
    if read:
        direct = read
        chosen = _put_first(read.evidence[0], chosen, text_units)[: settings.max_sentences]
    is_decided = takes_several or read is not None
    unsaid = "" if is_decided else state_what_is_unsaid(question, evidence, candidates, types)
    if unsaid:
        direct = None
    elif direct is None and not items:
        chosen = put_answer_before_bridge(question, chosen, types)
    is_open = not is_decided and direct is None
    is_other = about is not evidence and not says_everything(question, about[0])
    if unsaid or (is_open and (is_other or is_unclear(question, evidence))):
        chosen = choose_nearest(question, chosen, ranked)
        unsaid = introduce_nearest(question, chosen, unsaid)
    chosen = _write_speakers_as_asked(question, chosen, candidates)
    if groups is not None:
        order = list(dict.fromkeys(groups[c.text_unit] for c in chosen))
        chosen.sort(key=lambda c: order.index(groups[c.text_unit]))
    text, citations = _quote(question, chosen, text_units, direct, unsaid, is_list=bool(items))
    return question.answer(text, citations=citations, context=context)


def _keep_sentences(
    question: Question, candidates: Sequence[Candidate], text_units: Mapping[int, TextUnit]
) -> list[Candidate]:
    """Keep what may be quoted: sentences, and short answers, but no rows of tables."""
    return [
        c
        for c in candidates
        if (is_sentence(c, text_units[c.text_unit]) and not is_table_row(c))
        or is_short_answer(c, question)
    ]


def _rank_lines(
    question: Question, candidates: Sequence[Candidate], types: Mapping[str, str]
) -> list[RankedSentence]:
    """Rank the lines that are not prose; they are evidence only with all words of a question."""
    others = [c for c in candidates if not c.prose and not is_table_row(c)]
    lines = rank_answers(question, others, types)
    return [line for line in lines if line.coverage > FULL_WORD_COVERAGE]


def _quote(
    question: Question,
    chosen: Sequence[Candidate],
    text_units: Mapping[int, TextUnit],
    direct: DirectAnswer | None,
    unsaid: str,
    *,
    is_list: bool,
) -> tuple[str, tuple[Citation, ...]]:
    """Write sentences behind an answer in a few words, or what is unsaid, with their citations."""
    words = AskedWords(question)
    chosen = [cut_dateline(cut_page_parts(candidate), words) for candidate in chosen]
    citations = tuple(
        cite_passage(number, candidate, text_units[candidate.text_unit])
        for number, candidate in enumerate(chosen, 1)
    )
    opening = f"{direct.text} —" if direct and direct.text else ""
    if is_list and not opening:
        text = _write_list(chosen)
    else:
        quoted = (f"{c.quotation} [{number}]" for number, c in enumerate(chosen, 1))
        text = " ".join(filter(None, [opening or unsaid, *quoted]))
    return text, citations


def _write_list(items: Sequence[Candidate]) -> str:
    """Write the items of a list below its label, with their citations."""
    lines = (f"- {as_one_line(c.text)} [{number}]" for number, c in enumerate(items, 1))
    return "\n".join([f"{items[0].label}:", *lines])


def _write_speakers_as_asked(
    question: Question, chosen: list[Candidate], candidates: Sequence[Candidate]
) -> list[Candidate]:
    """Write the names of speakers as the question does: Li Hua, not LiHua."""
    apart = {c.label: split_joined_words(c.label) for c in candidates if c.label}
    if any(name != label and name in question.text for label, name in apart.items()):
        return [replace(c, label=apart.get(c.label, "")) for c in chosen]
    return chosen


def _find_list(
    question: Question, best: Candidate, candidates: Sequence[Candidate]
) -> list[Candidate]:
    """Return the items of the list that answers a question, within `MAX_WORDS`; or nothing.

    A list answers as a whole if the line above it has words of the question, and the best item
    has none: no item answers better than another.
    """
    asked = set(question.content_words)
    if question.wanted.kind not in KINDS_OF_LISTS:
        return []
    if not best.in_list:
        code = question.language.code
        items = find_announced_list(best, candidates, AskedWords(question), code)
    elif not asked & set(content_words(best.label)) or asked & set(content_words(best.text)):
        return []
    else:
        place = (best.text_unit, best.label)
        items = [c for c in candidates if c.in_list and (c.text_unit, c.label) == place]
    n_words = accumulate(len(item.text.split()) for item in items)
    fitting = [item for item, n in zip(items, n_words, strict=True) if n <= MAX_WORDS]
    return fitting if len(fitting) > 1 else []


def _put_first(
    first: Candidate, others: Sequence[Candidate], text_units: Mapping[int, TextUnit]
) -> list[Candidate]:
    """Put a sentence before others, without those that overlap with it."""
    document = text_units[first.text_unit]["document_id"]
    is_near = {number: unit["document_id"] == document for number, unit in text_units.items()}
    return [first, *(c for c in others if not (is_near[c.text_unit] and _overlap(c, first)))]


def _fit_words(
    question: Question,
    evidence: Sequence[RankedSentence],
    candidates: Sequence[Candidate],
    text_units: Mapping[int, TextUnit],
    most: int,
) -> list[Candidate]:
    """Return the best sentences within `MAX_WORDS`; sentences with a label are whole lines.

    What happened and why or how often stands in two sentences: they are quoted together if the
    second one refers to the first, or if the first one says what is asked and no reason. The cell
    that leads to the best one follows it.
    """
    min_score = evidence[0].score - MAX_SCORE_GAP
    near = [sentence for sentence in evidence if sentence.score >= min_score]
    near = leave_out_unrelated(question, near)
    chosen: list[Candidate] = []
    asked = AskedWords(question)
    n_left = MAX_WORDS
    best = [sentence.candidate for sentence in choose_distinct_sentences(near, most)]
    leading = near[0].led_by
    if leading and most > 1:
        best = list(dict.fromkeys([best[0], leading, *best[1:]]))[:most]
    for candidate in best:
        unit = text_units[candidate.text_unit]
        others = [c for c in chosen if c.text_unit == candidate.text_unit]
        if any(_overlap(candidate, other) for other in others):
            continue
        if chosen and candidate is not leading and adds_nothing(candidate, asked):
            continue
        wider = candidate
        if candidate.label:
            wider = extend_to_line(candidate, candidates, unit)
        elif (
            question.wanted.kind in FIT_OF_CLAUSE
            and refers_back(candidate.text, question.language)
            and not _tells(candidate.text, question)
        ):
            wider = _extend_backwards(candidate, candidates, unit)
        elif _lacks_reason(candidate, question, asked):
            wider = _extend_to_reason(candidate, candidates, unit, question)
        if not any(_overlap(wider, other) for other in others):
            candidate = wider
        n_words = len(candidate.quotation.split())
        if chosen and n_words > n_left:
            continue
        n_left -= n_words
        chosen.append(candidate)
    return chosen


def _tells(text: str, question: Question) -> bool:
    """Return whether a sentence has a reason or a manner, or the agent that a passive lacks."""
    language = question.language
    if find_answer_spans(text, question.wanted, language, {}):
        return True
    asked = AskedWords(question)
    wants_agent = question.wanted.kind == "manner" and is_passive(question.text, language)
    return wants_agent and bool(find_agents(text, asked, language, only_passive=True))


def _lacks_reason(candidate: Candidate, question: Question, asked: AskedWords) -> bool:
    """Return whether a sentence says all that a question asks the reason of, and no reason."""
    if question.wanted.kind != "reason" or may_give_reason(candidate.text, question.language):
        return False
    stems = asked.stems - asked.causes
    return bool(stems) and stems <= asked.find_said([candidate.text])


def _overlap(a: Candidate, b: Candidate) -> bool:
    return a.start_char < b.end_char and b.start_char < a.end_char


def _extend_backwards(
    candidate: Candidate, candidates: Sequence[Candidate], unit: TextUnit
) -> Candidate:
    """Extend a sentence to the sentence before in its paragraph, within `MAX_WORDS_OF_LINE`."""
    before = [c for c in candidates if c.text_unit == candidate.text_unit]
    before = [c for c in before if c.prose and c.end_char <= candidate.start_char]
    if not before:
        return candidate
    return _widen(candidate, before[-1].start_char, candidate.end_char, unit)


def _extend_to_reason(
    candidate: Candidate, candidates: Sequence[Candidate], unit: TextUnit, question: Question
) -> Candidate:
    """Extend a sentence to the sentence after in its paragraph, within `MAX_WORDS_OF_LINE`.

    The sentence after has a reason, or it is about what the first one says: "It is old."
    """
    after = [c for c in candidates if c.text_unit == candidate.text_unit]
    after = [c for c in after if c.prose and c.start_char >= candidate.end_char]
    if not after or after[0].label:
        return candidate
    text, language = after[0].text, question.language
    if not (begins_with_thing(text, language) or may_give_reason(text, language)):
        return candidate
    return _widen(candidate, candidate.start_char, after[0].end_char, unit)


def _widen(candidate: Candidate, start: int, end: int, unit: TextUnit) -> Candidate:
    """Widen a sentence to other places, unless it gets too long or leaves its paragraph."""
    text = unit["text"][start - unit["start_char"] : end - unit["start_char"]]
    if "\n\n" in text or len(text.split()) > MAX_WORDS_OF_LINE:
        return candidate
    return replace(candidate, text=text, start_char=start, end_char=end)


def extend_to_line(
    candidate: Candidate, candidates: Sequence[Candidate], unit: TextUnit
) -> Candidate:
    """Extend a sentence to the line that it is part of, within `MAX_WORDS_OF_LINE`.

    A turn of a chat often needs several short sentences to say one thing.
    """
    offset, text = unit["start_char"], unit["text"]
    start, end = candidate.start_char - offset, candidate.end_char - offset
    line = [
        (c.start_char - offset, c.end_char - offset)
        for c in candidates
        if c.text_unit == candidate.text_unit
        and (c.label, c.time) == (candidate.label, candidate.time)
    ]
    after = [other for other in line if other[0] >= end]
    before = [other for other in line if other[1] <= start]
    for first, last in (*reversed(before), *after):
        wider = (min(start, first), max(end, last))
        said = text[wider[0] : wider[1]]
        if "\n" not in said and len(said.split()) <= MAX_WORDS_OF_LINE:
            start, end = wider
    return replace(
        candidate, text=text[start:end], start_char=offset + start, end_char=offset + end
    )

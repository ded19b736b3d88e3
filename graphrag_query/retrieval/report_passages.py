"""Put the best passages on a question beside the reports in the contexts of global search."""

from collections.abc import Sequence

from graphrag_index.schema.settings.searches import GlobalSearch
from graphrag_query.answer import Context
from graphrag_query.answering.written_answer import source_context
from graphrag_query.question.cues import asks_for_everything
from graphrag_query.question.question import Question
from graphrag_query.retrieval.excerpts import shorten_to_subject
from graphrag_query.retrieval.report_selection import subject_words
from graphrag_query.retrieval.text_unit_ranking import start_search
from graphrag_query.retrieval.theme_passages import community_paths


def add_passages(
    question: Question, batches: Sequence[Context], settings: GlobalSearch
) -> list[Context]:
    """Fill each context of reports with the best passages of their communities.

    The passages are those of local search. One of no community with a report goes to the first
    context. If the question asks for all that is said of its subject, the passages are shortened to
    that, so that more of them fit. A question without a subject gets none.
    """
    max_tokens = question.max_context_tokens(settings.max_context_tokens)
    if not settings.passage_share or not subject_words(question):
        return list(batches)
    index = question.index
    ranked = dict.fromkeys(unit.number for unit in start_search(question)())
    found_units = index.text_units(ranked)
    left = {number: found_units[number] for number in ranked}
    if asks_for_everything(question.text):
        left = shorten_to_subject(left, subject_words(question))
    paths = community_paths(index, left)
    # All calls together show at most these tokens, unless they show all reports of a level.
    total = settings.n_map_tokens if settings.selection == "similar" else 1 << 40
    total -= sum(batch.n_tokens for batch in batches)
    found: list[Context] = []
    for batch in batches:
        reports = batch.shown["Reports"]
        own = [n for n in left if reports & set(paths[n])]
        if not found:
            known = set().union(*(other.shown["Reports"] for other in batches))
            own = [n for n in left if reports & set(paths[n]) or not known & set(paths[n])]
        room = min(max_tokens - batch.n_tokens, total)
        packed = source_context(question, {n: left[n] for n in own}, max(room, 0))
        total -= packed.n_tokens
        for number in packed.shown.get("Sources", ()):
            del left[number]
        found.append(_join_contexts(batch, packed))
    return found


def _join_contexts(reports: Context, passages: Context) -> Context:
    if passages.is_empty:
        return reports
    return Context(
        {**reports.tables, **passages.tables},
        f"{reports.text}\n{passages.text}",
        reports.n_tokens + passages.n_tokens,
        {**reports.n_left_out, **passages.n_left_out},
    )

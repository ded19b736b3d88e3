"""Scores of pairs of entities, from names, types, documents, neighbours, or a model.

A score is the confidence (0 to 1) that two entities are the same thing.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import polars as pl

from graphrag_index.llm.chat_model import ChatModel
from graphrag_index.llm.prompts import Prompts
from graphrag_index.llm.request import (
    Message,
    ParsedReply,
    ReplyError,
    ReplyFormat,
    Request,
    find_reply_field,
    object_schema,
)
from graphrag_index.resolution.candidates import Node
from graphrag_index.resolution.name_similarity import (
    FIRST_LETTERS,
    INITIALS,
    MAX_DOUBTFUL_SCORE,
    Name,
    Similarity,
    can_be_one_person,
    compare_names,
    kind_of_type,
    mean_different_things,
)
from graphrag_index.step import Progress, ShardFrames, Shards
from graphrag_nlp.text.languages import read_lists
from graphrag_nlp.text.normalize import fold

# Maximum amounts added to the score of a doubtful pair that shares documents or neighbours.
DOCUMENT_BONUS = 0.05
NEIGHBOUR_BONUS = 0.1
# Maximum score of two entities whose types contradict each other, such as person and place.
MAX_SCORE_OF_DIFFERENT_TYPES = 0.6
# Score of a short form and a full name if a text explains the short form: "Royal Society (RS)".
EXPLAINED_FORM_SCORE = 0.95
# Score of a short form and a full name if no other name fits, and they share a document.
ONLY_NAME_SCORE = 0.92
# Factor for the similarity of vectors. The factor is low, since North Korea and South Korea, for
# example, have similar vectors.
VECTOR_WEIGHT = 0.75

# Number of pairs in a shard.
PAIRS_PER_SHARD = 2_000
# Maximum number of characters of a description in the prompt.
MAX_DESCRIPTION_CHARACTERS = 600
# Keys of the answer in a reply, words that mean "same", and words that mean "different".
_ANSWER_WORDS = {
    name: words.split()
    for name, words in read_lists("graphrag_index/resolution/data/words")["answers"].items()
}


@dataclass(frozen=True)
class Pair:
    """Two entities by number, `left` < `right`, with their score and the reasons for the score."""

    left: int
    right: int
    score: float
    evidence: tuple[str, ...]


def _count_common_values(
    pairs: pl.DataFrame, documents: pl.DataFrame, links: pl.DataFrame
) -> pl.DataFrame:
    """Count the common documents and neighbours of each pair.

    `n_least` is the smaller of the numbers of neighbours that the two entities have.
    """
    counted = pairs
    for values, column in ((documents, "document"), (links, "neighbour")):
        common = (
            # The right entity is mentioned less often, so it has fewer values to join.
            pairs.join(values, left_on="right", right_on="entity")
            .join(values, left_on=["left", column], right_on=["entity", column], how="semi")
            .group_by("left", "right")
            .agg(pl.len().alias(f"n_{column}s"))
        )
        counted = counted.join(common, on=["left", "right"], how="left")
    degree = links.group_by("entity").agg(n=pl.len())
    return (
        counted.join(degree, left_on="left", right_on="entity", how="left")
        .join(degree, left_on="right", right_on="entity", how="left", suffix="_right")
        .select(
            *("left", "right"),
            pl.col("n_documents", "n_neighbours").fill_null(0),
            n_least=pl.min_horizontal(pl.col("n", "n_right").fill_null(0)),
        )
    )


def compare_pairs(
    pairs: pl.DataFrame, nodes: pl.DataFrame, shards: Shards
) -> dict[tuple[int, int], Similarity]:
    """Compare the names of candidate pairs; return the similarities of those that are similar.

    `pairs` has `left`, `right` and `similarity`, which is null unless vectors found the pair.
    `nodes` has the `title` and the `type` of each node.
    """
    named = pairs.select(
        *("left", "right", "similarity"),
        *(
            nodes[column].gather(pairs[side]).alias(name)
            for side, names in (("left", ("title", "type")), ("right", ("other", "other_type")))
            for column, name in zip(("title", "type"), names, strict=True)
        ),
    )
    work = ((None, {"pairs": part}) for part in named.iter_slices(PAIRS_PER_SHARD))
    return {
        (left, right): Similarity(score, tuple(said))
        for _, part in shards.map(_compare_shard, work)
        for left, right, score, said in part["pairs"].iter_rows()
    }


def _compare_shard(shard: ShardFrames) -> ShardFrames:
    parse = cache(lambda title, kind: Name(title, kind_of_type(kind)))
    rows = shard["pairs"].select("title", "type", "other", "other_type", "similarity")
    found: list[Similarity | None] = []
    for title, kind, other, other_kind, similarity in rows.iter_rows():
        a, b = parse(title, kind), parse(other, other_kind)
        likeness = compare_names(a, b)
        if similarity is not None:
            reason = f"vectors alike ({similarity:.2f})"
            if likeness is not None:
                likeness = replace(likeness, evidence=(*likeness.evidence, reason))
            elif not mean_different_things(a, b) and can_be_one_person(a, b):
                likeness = Similarity(VECTOR_WEIGHT * similarity, (reason,))
        found.append(likeness)
    score = pl.Series([one and one.score for one in found], dtype=pl.Float64)
    evidence = pl.Series([one.evidence if one else () for one in found], dtype=pl.List(pl.String))
    compared = shard["pairs"].select("left", "right", score=score, evidence=evidence)
    return {"pairs": compared.drop_nulls("score")}


def score_pairs(
    nodes: Mapping[int, Node],
    similarities: Mapping[tuple[int, int], Similarity],
    documents: pl.DataFrame,
    links: pl.DataFrame,
    explained: Collection[tuple[str, str]],
    texts: Mapping[int, str],
) -> list[Pair]:
    """Score pairs of similar names; sorted by `left`, `right`.

    `documents` has `entity` and `document`. `links` has `entity` and `neighbour`, with each
    link in both directions. No table has duplicates. `explained` has acronyms, each with the
    letters of a full name. `texts` are descriptions by entity.
    """
    names = {at: node.name for at, node in nodes.items()}
    schema = {"left": pl.Int64, "right": pl.Int64}
    kept = pl.DataFrame(list(similarities), schema, orient="row")
    short_forms = _ShortForms(names, similarities, explained, texts)
    scored = []
    rows = _count_common_values(kept, documents, links).sort("left", "right").iter_rows()
    for left, right, n_documents, n_neighbours, n_least in rows:
        a, b = names[left], names[right]
        likeness = short_forms.adjust_score(left, right, similarities[left, right], n_documents > 0)
        score, evidence = likeness.score, list(likeness.evidence)
        if score <= MAX_DOUBTFUL_SCORE:
            # Raise the score of a doubtful pair that shares documents or neighbours.
            if n_documents:
                score += DOCUMENT_BONUS
                evidence.append(_format_count(n_documents, "document") + " in common")
            if n_neighbours:
                score += NEIGHBOUR_BONUS * n_neighbours / n_least
                evidence.append(_format_count(n_neighbours, "neighbour") + " in common")
            score = min(score, MAX_DOUBTFUL_SCORE)
        if a.kind and b.kind and a.kind != b.kind:
            score = min(score, MAX_SCORE_OF_DIFFERENT_TYPES)
            evidence.append(f"{a.kind} against {b.kind}")
        scored.append(Pair(left, right, round(score, 3), tuple(evidence)))
    return scored


class _ShortForms:
    """The names that each short form (an acronym, or a name with initials) may stand for."""

    def __init__(
        self,
        names: Mapping[int, Name],
        similarities: Mapping[tuple[int, int], Similarity],
        explained: Collection[tuple[str, str]],
        texts: Mapping[int, str],
    ) -> None:
        self.names = names
        # Pairs (acronym, letters of the full name) in names such as "Royal Society (RS)".
        self.explained_by_name = explained
        # Pairs of an acronym and a full name for which a text explains the acronym.
        self.explained_by_text: set[tuple[int, int]] = set()
        # Full names, as letters only, that fit a short form; by its number and kind of evidence.
        self.full_names: dict[tuple[int, str], set[str]] = defaultdict(set)
        for pair, likeness in similarities.items():
            for short, long in (pair, pair[::-1]):
                letters = names[long].plain.letters
                if INITIALS in likeness.evidence:
                    self.full_names[short, INITIALS].add(letters)
                elif FIRST_LETTERS in likeness.evidence and self._is_explained(short, long, texts):
                    self.explained_by_text.add(pair)
                    self.full_names[short, FIRST_LETTERS].add(letters)

    def _is_explained(self, short: int, long: int, texts: Mapping[int, str]) -> bool:
        """Tell whether a name or a description has one of two names in brackets after the other."""
        a, b = self.names[short], self.names[long]
        if not a.is_acronym or (a.letters, b.plain.letters) in self.explained_by_name:
            return a.is_acronym
        # Replace brackets by words first, since `fold` removes brackets.
        text = f"{texts.get(short, '')}\n{texts.get(long, '')}"
        folded = fold(text.replace("(", " qqopen ").replace(")", " qqclose "))
        first, second = sorted((a.title, b.title), key=len)
        names = fold(first.replace(".", "")), fold(second)
        return any(
            f"{before} qqopen {inside} qqclose" in folded for before, inside in (names, names[::-1])
        )

    def adjust_score(
        self, left: int, right: int, likeness: Similarity, in_one_document: bool
    ) -> Similarity:
        """Raise the score if a short form fits one name only; lower it if a title is missing."""
        evidence = likeness.evidence
        if FIRST_LETTERS in evidence and (left, right) in self.explained_by_text:
            short = left if self.names[left].is_acronym else right
            if len(self.full_names[short, FIRST_LETTERS]) > 1:
                return replace(likeness, evidence=(*evidence, "others are explained as well"))
            return Similarity(EXPLAINED_FORM_SCORE, (*evidence, "the text explains it"))
        if INITIALS in evidence:
            if any(len(self.full_names[number, INITIALS]) > 1 for number in (left, right)):
                return replace(likeness, evidence=(*evidence, "others fit as well"))
            if in_one_document:
                return Similarity(ONLY_NAME_SCORE, (*evidence, "the one that fits in its document"))
        if "without title" in evidence and not in_one_document:
            return replace(likeness, score=min(likeness.score, MAX_DOUBTFUL_SCORE))
        return likeness


def _format_count(n: int, noun: str) -> str:
    return f"{n} {noun}{'s' * (n > 1)}"


def ask_model(
    pairs: Sequence[Pair],
    nodes: Mapping[int, Node],
    texts: Mapping[int, str],
    chat_model: ChatModel,
    prompts: Prompts,
    progress: Progress,
) -> dict[Pair, bool | None]:
    """Ask a model whether the two entities of each pair are the same; one request per pair.

    An answer is None if the request failed. `texts` are the descriptions by node.
    """
    system = Message(role="system", content=prompts.fill("resolve_entities", {}).strip())

    def describe_entity(at: int) -> str:
        lines = [f"Name: {' '.join(nodes[at].title.split())}"]
        lines += [f"Type: {nodes[at].type}"] if nodes[at].type else []
        description = " ".join(texts.get(at, "").split())
        if len(description) > MAX_DESCRIPTION_CHARACTERS:
            description = description[:MAX_DESCRIPTION_CHARACTERS].rpartition(" ")[0] + " ..."
        lines += [f"Description: {description}"] if description else []
        return "\n".join(lines)

    def make_requests() -> Iterator[Request]:
        for pair in pairs:
            user = f"First:\n{describe_entity(pair.left)}\n\nSecond:\n{describe_entity(pair.right)}"
            label = f"{nodes[pair.left].title} and {nodes[pair.right].title}"
            yield Request(label, [system, Message(role="user", content=user)], SAME_ENTITY_FORMAT)

    progress.start(len(pairs), "doubtful pairs")
    answers: dict[Pair, bool | None] = {}
    for pair, outcome in zip(pairs, chat_model.replies(make_requests()), strict=True):
        answers[pair] = outcome.values[0] if outcome.values and not outcome.failure else None
        progress.advance()
    return answers


def _parse_same_entity_reply(data: Any) -> ParsedReply:
    """Parse {"same": true} and its variants; raise ReplyError if the reply gives no answer."""
    data = find_reply_field(data, _ANSWER_WORDS["keys"])
    word = "" if data is None else str(data).strip().strip(".!\"'").casefold().replace(" ", "_")
    if word in _ANSWER_WORDS["same"]:
        return ParsedReply(True)
    if word in _ANSWER_WORDS["different"]:
        return ParsedReply(False)
    raise ReplyError("it must be an object with `same`, which is true or false")


SAME_ENTITY_FORMAT = ReplyFormat(
    "same_entity",
    object_schema({"reason": {"type": "string"}, "same": {"type": "boolean"}}),
    _parse_same_entity_reply,
    'Reply with one JSON object and nothing else: {"reason": "...", "same": true or false}',
)

"""Types, examples and the text of an extraction prompt for the documents of an index."""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphrag_evaluation.tuning.corpus_sample import UNKNOWN_TYPES, KnownRecords, SampledPassage
from graphrag_index.extraction.alignment import Passage, Span
from graphrag_index.extraction.graph_reply import FoundRecords, clean_line, type_key
from graphrag_index.llm.prompts import n_prompt_tokens
from graphrag_index.llm.request import ParsedReply, ReplyError, ReplyFormat, object_schema
from graphrag_nlp.text.normalize import title_key

# Headings of the added sections. A later tuning replaces everything from the first heading on.
ABOUT_HEADING, EXAMPLES_HEADING = "# About these documents", "# Examples from these documents"
EXAMPLES_NOTE = "They show the replies that are wanted. Their passages are material as well."
# A proposed type occurs in at least so many passages of the sample.
MIN_PASSAGES_OF_TYPE = 2
MAX_TYPES = 12
MAX_EXAMPLES = 2
# An example with more tokens would cost more in each request than it tells.
MAX_EXAMPLE_TOKENS = 900
MIN_EXAMPLE_ENTITIES = 2
LANGUAGE_NAMES = {
    **{"cs": "Czech", "da": "Danish", "de": "German", "el": "Greek", "en": "English"},
    **{"es": "Spanish", "fr": "French", "it": "Italian", "ja": "Japanese", "ko": "Korean"},
    **{"nl": "Dutch", "pl": "Polish", "pt": "Portuguese", "ru": "Russian", "sv": "Swedish"},
    **{"ar": "Arabic", "he": "Hebrew", "hi": "Hindi", "zh": "Chinese"},
}
_BRACES = re.compile(r"\{\{\w+\}\}")


@dataclass(frozen=True)
class ProposedType:
    """A type of entities, with the number of sampled passages that name such an entity."""

    name: str
    n_passages: int
    is_given: bool  # by the user


@dataclass(frozen=True)
class ExampleSpan:
    """A name, or the evidence of a relationship, at its place in the document."""

    text: str
    start_char: int
    end_char: int


@dataclass(frozen=True)
class PromptExample:
    """A passage of a document, word for word, with the reply that is wanted."""

    document: str
    label: str
    text: str
    entities: tuple[Mapping[str, str], ...]
    relationships: tuple[Mapping[str, Any], ...]
    names: tuple[ExampleSpan, ...]  # the first mention of each entity
    evidence: tuple[ExampleSpan, ...]  # of each relationship
    n_left_out: int  # entities of the passage that the example does not show

    @property
    def types(self) -> set[str]:
        """The types of its entities."""
        return {entity["type"] for entity in self.entities}

    @property
    def reply(self) -> str:
        """The reply, as the model should write it."""
        records = {"entities": self.entities, "relationships": self.relationships}
        return json.dumps(records, ensure_ascii=False)


def propose_types(
    given: Sequence[str], passages_of_types: Iterable[tuple[str, str]]
) -> list[ProposedType]:
    """Return the given types in their order, then the most frequent others.

    `passages_of_types` are pairs (type, key of a passage that names an entity of this type).
    """
    found: dict[str, set[str]] = defaultdict(set)
    spellings: dict[str, str] = {}
    for name, passage in passages_of_types:
        key = type_key(name)
        if key not in UNKNOWN_TYPES:
            found[key].add(passage)
            spellings.setdefault(key, clean_line(name).lower())
    keys = list(dict.fromkeys(map(type_key, given)))
    first = {type_key(name): name for name in reversed(given)}
    types = [ProposedType(first[key], len(found[key]), True) for key in keys]
    others = [key for key in found if key not in first and len(found[key]) >= MIN_PASSAGES_OF_TYPE]
    others.sort(key=lambda key: (-len(found[key]), key))
    n_free = max(0, MAX_TYPES - len(types))
    return types + [ProposedType(spellings[key], len(found[key]), False) for key in others[:n_free]]


def make_example(
    passage: SampledPassage,
    known: KnownRecords,
    types: Mapping[str, str],
    found: FoundRecords | None = None,
    n_missed: int = 0,
) -> PromptExample | None:
    """Make an example of a passage, or return None if it is not suitable.

    `types` are the wanted types by `type_key`; entities of other types are left out. The
    descriptions are those of the reply `found` of a model; without it, the sentences of the
    passage that name the entity or state the relationship. `n_missed` other entities of the
    passage are known, but not in `known`. Each name stands in the passage at
    its span, word for word.
    """
    text = Passage(passage.text, passage.language)
    told = (
        {title_key(entity.name): entity.description for entity in found.entities} if found else {}
    )
    entities, names, kept = [], [], {}
    for at, entity in enumerate(known.entities):
        kind = types.get(type_key(entity.type))
        spans = [span for span in entity.spans if passage.text[slice(*span)] == entity.name]
        if kind is None or not spans:
            continue
        sentence = passage.text[slice(*text.extend_to_sentences(*spans[0]))]
        description = told.get(title_key(entity.name)) or clean_line(sentence)
        kept[at] = entity.name
        entities.append({"name": entity.name, "type": kind, "description": description})
        names.append(_in_document(passage, spans[0]))
    pairs = {pair: span for pair, span in known.pairs.items() if kept.keys() >= set(pair)}
    relationships = _make_relationships(passage, pairs, kept, found)
    if len(entities) < MIN_EXAMPLE_ENTITIES or not relationships:
        return None
    example = PromptExample(
        passage.document,
        passage.label,
        passage.text,
        tuple(entities),
        relationships,
        tuple(names),
        tuple(_in_document(passage, span) for span in pairs.values()),
        len(known.entities) - len(entities) + n_missed,
    )
    # Double braces would be a placeholder of the prompt.
    return None if _BRACES.search(example.text + example.reply) else example


def _make_relationships(
    passage: SampledPassage,
    pairs: Mapping[tuple[int, int], Span],
    names: Mapping[int, str],
    found: FoundRecords | None,
) -> tuple[dict[str, Any], ...]:
    """Return the relationships of pairs of entities, told as in the reply of a model, if any."""
    links = {}
    for link in reversed(found.relationships if found else ()):
        links[frozenset((title_key(link.source), title_key(link.target)))] = link
    relationships = []
    for (one, other), span in pairs.items():
        source, target = names[one], names[other]
        said = links.get(frozenset((title_key(source), title_key(target))))
        if said is not None and title_key(said.source) != title_key(source):
            source, target = target, source
        sentence = clean_line(passage.text[slice(*span)])
        relationships.append(
            {
                "source": source,
                "target": target,
                "type": said.type if said else "",
                "description": (said.description if said else "") or sentence,
                "strength": int(said.strength) if said else 5,
            }
        )
    return tuple(relationships)


def _in_document(passage: SampledPassage, span: Span) -> ExampleSpan:
    first = passage.start_char
    return ExampleSpan(passage.text[slice(*span)], first + span[0], first + span[1])


def choose_examples(candidates: Iterable[PromptExample]) -> list[PromptExample]:
    """Choose the examples that together show most types, of different documents.

    An example that leaves out an entity of its passage would teach a model to do the same: it
    comes after all others. On a tie, more relationships for each token are better.
    """
    n_tokens = [(one, n_prompt_tokens(one.text + one.reply)) for one in candidates]
    free = [(one, n) for one, n in n_tokens if n <= MAX_EXAMPLE_TOKENS]
    chosen: list[PromptExample] = []
    shown: set[str] = set()

    def value(item: tuple[PromptExample, int]) -> tuple[int, int, float]:
        one, n = item
        return -one.n_left_out, len(one.types - shown), len(one.relationships) / n

    while free and len(chosen) < MAX_EXAMPLES:
        best, _ = max(free, key=value)
        chosen.append(best)
        shown |= best.types
        free = [(one, n) for one, n in free if one.document != best.document]
    return chosen


def split_prompt(text: str) -> str:
    """Return the instructions of a prompt, without the sections of an earlier tuning."""
    places = [at for at in map(text.find, (ABOUT_HEADING, EXAMPLES_HEADING)) if at >= 0]
    return text[: min(places)].rstrip() + "\n" if places else text


def describe_documents(domain: str, languages: Mapping[str, int]) -> str:
    """Write the section of a prompt that tells what the documents are."""
    lines = [clean_line(_BRACES.sub("", domain))] if domain else []
    known = [LANGUAGE_NAMES[code] for code in languages if code in LANGUAGE_NAMES]
    if known:
        lines.append(f"They are written in {', '.join(known)}.")
    return "\n".join([ABOUT_HEADING, *lines]) if lines else ""


def compose_prompt(instructions: str, about: str, examples: Sequence[PromptExample]) -> str:
    """Join instructions, the description of the documents, and examples to a prompt."""
    parts = [instructions.strip(), about]
    if examples:
        shown = (f"Passage:\n{one.text.strip()}\nReply:\n{one.reply}" for one in examples)
        parts.append("\n\n".join([f"{EXAMPLES_HEADING}\n{EXAMPLES_NOTE}", *shown]))
    return "\n\n".join(filter(None, parts)) + "\n"


@dataclass(frozen=True)
class DocumentDescription:
    """The documents as a model describes them; types with the passages that name their entities."""

    domain: str = ""
    types: tuple[tuple[str, str], ...] = ()


def description_format(passages: Sequence[SampledPassage]) -> ReplyFormat:
    """Return the format of a description. A type is dropped if no passage has a name of it."""
    text = {"type": "string"}
    record = object_schema({"name": text, "names": {"type": "array", "items": text}})
    schema = object_schema({"domain": text, "types": {"type": "array", "items": record}})
    texts = [(passage.key, Passage(passage.text, passage.language)) for passage in passages]

    def find_passages(names: Sequence[Any]) -> Iterator[str]:
        for key, passage in texts:
            if any(isinstance(name, str) and passage.find_name(name) for name in names):
                yield key

    def read(data: Any) -> ParsedReply:
        if not isinstance(data, dict) or not isinstance(data.get("domain"), str):
            raise ReplyError("it must be an object with the text domain and the list types")
        records = data.get("types")
        types: list[tuple[str, str]] = []
        dropped = 0
        for entry in records if isinstance(records, list) else []:
            name = entry.get("name") if isinstance(entry, dict) else None
            names = entry.get("names") if isinstance(entry, dict) else None
            keys = [*find_passages(names)] if isinstance(names, list) else []
            if isinstance(name, str) and type_key(name) and keys:
                types += ((name, key) for key in keys)
            else:
                dropped += 1
        description = DocumentDescription(clean_line(data["domain"]), tuple(types))
        return ParsedReply(description, dropped)

    instructions = 'Reply with JSON: {"domain": "…", "types": [{"name": "…", "names": ["…"]}]}'
    return ReplyFormat("description_of_documents", schema, read, instructions)

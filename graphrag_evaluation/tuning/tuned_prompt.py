"""Types, examples and the text of an extraction prompt for the documents of an index."""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphrag_evaluation.tuning.corpus_sample import SampledPassage
from graphrag_index.extraction.graph_reply import FoundRecords, clean_line, type_key
from graphrag_index.llm.prompts import n_prompt_tokens
from graphrag_index.llm.request import ParsedReply, ReplyError, ReplyFormat, object_schema
from graphrag_nlp.text.normalize import title_key

# Headings of the added sections. A later tuning replaces everything from the first heading on.
ABOUT_HEADING, EXAMPLES_HEADING = "# About these documents", "# Examples from these documents"
EXAMPLES_NOTE = "They show the replies that are wanted. Their passages are material as well."
# Types of the linguistic extractor that only say that the type is not known.
UNKNOWN_TYPES = frozenset({"", "name", "noun phrase", "acronym"})
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
class PromptExample:
    """A passage of a document, word for word, with the reply that is wanted."""

    document: str
    text: str
    entities: tuple[Mapping[str, str], ...]
    relationships: tuple[Mapping[str, Any], ...]
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
    given: Sequence[str], passages_of_types: Iterable[tuple[str, int]], min_passages: int
) -> dict[str, int]:
    """Return the given types in their order, then the most frequent others.

    `passages_of_types` are pairs (type, number of a passage that names an entity of this type).
    Each type has its number of passages; others than the given have `min_passages` at least.
    """
    found: dict[str, set[int]] = defaultdict(set)
    spellings: dict[str, str] = {}
    for name, passage in passages_of_types:
        key = type_key(name)
        if key not in UNKNOWN_TYPES:
            found[key].add(passage)
            spellings.setdefault(key, clean_line(name).lower())
    first = {type_key(name): name for name in reversed(given)}
    others = [key for key in found if key not in first and len(found[key]) >= min_passages]
    others.sort(key=lambda key: (-len(found[key]), key))
    keys = list(dict.fromkeys(map(type_key, given)))
    keys += others[: max(0, MAX_TYPES - len(keys))]
    return {first.get(key) or spellings[key]: len(found[key]) for key in keys}


def make_example(
    passage: SampledPassage, found: FoundRecords, types: Iterable[str]
) -> PromptExample | None:
    """Make an example of a passage and its records, or return None if it is not suitable.

    Entities of other types, and names that do not stand in the passage, are left out.
    """
    wanted = {type_key(name): name for name in types}
    entities, names = [], {}
    for entity in found.entities:
        kind, place = wanted.get(type_key(entity.type)), passage.passage.find_name(entity.name)
        written = {passage.text[slice(*span)] for span in place.spans} if place else ()
        if kind is not None and entity.name in written:
            names[title_key(entity.name)] = entity.name
            entities.append({**entity._asdict(), "type": kind})
    relationships = [
        {
            **link._asdict(),
            "source": names[title_key(link.source)],
            "target": names[title_key(link.target)],
            "strength": int(link.strength),
        }
        for link in found.relationships
        if {title_key(link.source), title_key(link.target)} <= names.keys()
    ]
    if len(entities) < MIN_EXAMPLE_ENTITIES or not relationships:
        return None
    n_left_out = len(found.entities) - len(entities)
    example = PromptExample(
        passage.document, passage.text, tuple(entities), tuple(relationships), n_left_out
    )
    # Double braces would be a placeholder of the prompt.
    return None if _BRACES.search(example.text + example.reply) else example


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


@dataclass(frozen=True)
class DocumentDescription:
    """The documents as a model describes them; types with the passages that name their entities."""

    domain: str = ""
    persona: str = ""  # who reads such documents
    types: tuple[tuple[str, int], ...] = ()


def description_format(passages: Sequence[SampledPassage]) -> ReplyFormat:
    """Return the format of a description. A type is dropped if no passage has a name of it."""
    text = {"type": "string"}
    record = object_schema({"name": text, "names": {"type": "array", "items": text}})
    fields = {"domain": text, "persona": text, "types": {"type": "array", "items": record}}

    def find_passages(names: Sequence[Any]) -> Iterator[int]:
        for one in passages:
            if any(isinstance(name, str) and one.passage.find_name(name) for name in names):
                yield one.number

    def read(data: Any) -> ParsedReply:
        if not isinstance(data, dict) or not isinstance(data.get("domain"), str):
            raise ReplyError("it must be an object with the text domain and the list types")
        records = data.get("types")
        types: list[tuple[str, int]] = []
        dropped = 0
        for entry in records if isinstance(records, list) else []:
            name = entry.get("name") if isinstance(entry, dict) else None
            names = entry.get("names") if isinstance(entry, dict) else None
            numbers = [*find_passages(names)] if isinstance(names, list) else []
            if isinstance(name, str) and type_key(name) and numbers:
                types += ((name, number) for number in numbers)
            else:
                dropped += 1
        said = (clean_line(str(data.get(name) or "")) for name in ("domain", "persona"))
        return ParsedReply(DocumentDescription(*said, tuple(types)), dropped)

    instructions = (
        'Reply with JSON: {"domain": "…", "persona": "…", "types": [{"name": "…", "names": ["…"]}]}'
    )
    return ReplyFormat("description_of_documents", object_schema(fields), read, instructions)


def describe_documents(description: DocumentDescription, languages: Iterable[str]) -> str:
    """Write the section of a prompt that tells what the documents are."""
    lines = [description.domain]
    if description.persona:
        lines.append(f"Read them as {description.persona.rstrip('.')}.")
    known = [LANGUAGE_NAMES[code] for code in languages if code in LANGUAGE_NAMES]
    if known:
        lines.append(f"They are written in {', '.join(known)}.")
    said = "\n".join(filter(None, lines))
    return f"{ABOUT_HEADING}\n{_BRACES.sub('', said)}" if said else ""


def compose_prompt(prompt: str, about: str, examples: Sequence[PromptExample] = ()) -> str:
    """Add the description of the documents and examples to a prompt, in place of earlier ones."""
    places = [at for at in map(prompt.find, (ABOUT_HEADING, EXAMPLES_HEADING)) if at >= 0]
    parts = [prompt[: min(places, default=len(prompt))].strip(), about]
    if examples:
        shown = (f"Passage:\n{one.text.strip()}\nReply:\n{one.reply}" for one in examples)
        parts.append("\n\n".join([f"{EXAMPLES_HEADING}\n{EXAMPLES_NOTE}", *shown]))
    return "\n\n".join(filter(None, parts)) + "\n"

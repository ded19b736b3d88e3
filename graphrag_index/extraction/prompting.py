"""Requests about text units: prompts, gleanings, and requests for added types.

A schema is the list of types that one request asks for; a chain has the schemas of all requests
about one text unit. The chains are stored with the replies. So a later run can build the same
requests again, and find their replies in the cache.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import filterfalse
from typing import Any, Protocol

from graphrag_index.extraction.alignment import Passage
from graphrag_index.extraction.graph_reply import (
    NAME_PLACEHOLDERS,
    REPLY_WORDS,
    ExtractionFormat,
    FoundEntity,
    FoundRecords,
    FoundRelationship,
    RelationshipKind,
    Schema,
    SchemaChain,
    clean_line,
    drop_removed_types,
    merge_schemas,
    type_key,
)
from graphrag_index.llm.prompts import Prompts, quote_text, replace_marks
from graphrag_index.llm.request import Message, Request, ask_in_parts
from graphrag_nlp.text.normalize import fold, title_key
from graphrag_nlp.text.periods import find_periods
from graphrag_nlp.text.subjects import MAX_LABEL_CHARS, find_subject

# Key under which the requested schemas are stored, in the same database as the replies.
HISTORY_KEY = "schemas of extract_graph"
# Maximum number of characters around a title in its own line, as in "**title:** The Visit".
MAX_MARK_CHARS = 16


def quote_line(text: str) -> str:
    """Put text of documents on one line of a prompt."""
    return replace_marks(clean_line(text))


def describe_document(
    title: str, path: str, head: str, metadata: str | None, creation_date: str
) -> str:
    """Return lines that tell a model what the passages of a document are about; "" if none do.

    `head` is the start of the text. A line that says nothing new is left out.
    """
    subject = find_subject(title, path, head, metadata)
    parts = dict.fromkeys(filter(_is_known, quote_line(subject.label).split("; ")))
    label = "; ".join(p for p in parts if not any(p in other for other in parts if other != p))
    # A single letter or a number, as in the file 17.txt, says nothing.
    label = label if sum(map(str.isalpha, label)) > 1 else ""
    period = "" if find_periods(label) else subject.period or ""
    entity = quote_line(subject.entity) if _is_known(subject.entity) else ""
    lines = {
        "Document": label,
        "Period": period,
        "Date": "" if subject.period else quote_line(creation_date),
        "About": "" if entity in label or fold(entity) == fold(subject.label) else entity,
    }
    return "\n".join(f"{name}: {value}" for name, value in lines.items() if value)


def _is_known(part: str) -> bool:
    """Return whether the value of a field, such as "Author: unknown", says something."""
    return title_key(part.rpartition(": ")[2]) not in NAME_PLACEHOLDERS


def format_subject(subject: str, text: str, headings: str = "") -> str:
    """Return the lines of `describe_document`, and the section, that stand before a passage.

    What its first lines or its headings say is left out.
    """
    section, lines = quote_line(headings), []
    said = [*text[:MAX_LABEL_CHARS].splitlines(), *section.split(" > ")]
    said = [quote_line(line).casefold() for line in said]

    def is_new(part: str) -> bool:
        longest = len(part) + MAX_MARK_CHARS
        return not any(part.casefold() in line and len(line) <= longest for line in said)

    for line in subject.splitlines():
        name, _, value = line.partition(": ")
        new = list(filter(is_new, value.split("; ")))
        lines += [f"{name}: {'; '.join(new)}"] * bool(new)
    lines += [f"Section: {section}"] * bool(section)
    return "".join(f"{line}\n" for line in [*lines, ""]) if lines else ""


def choose_chain(answered: Iterable[SchemaChain], wanted: Schema) -> SchemaChain:
    """Return the chain of schemas that asks for all wanted types in a text unit.

    Of the `answered` chains (with cached replies), the one with most wanted types is chosen; on a
    tie the shortest, then the first. A schema with the missing types is added to it. If no chain
    asks for any of the wanted types of entities, a new chain requests all types.
    """
    missing = {
        chain: _missing_types(chain, wanted) for chain in answered if chain[0].is_comparable(wanted)
    }
    best = min(missing, key=lambda chain: (_n_types(missing[chain]), len(chain)), default=())
    if not best or (wanted.types_by_key and missing[best].types_by_key == wanted.types_by_key):
        return (wanted,)
    return (*best, missing[best]) if _n_types(missing[best]) else best


def _missing_types(chain: SchemaChain, wanted: Schema) -> Schema:
    """Return a schema with the wanted types that no request of a chain asks for."""
    asked = merge_schemas(chain)
    names = (name for key, name in wanted.types_by_key.items() if key not in asked.types_by_key)

    def is_requested(kind: RelationshipKind) -> bool:
        key, *ends = kind.type_keys
        return any(other.allows_entity_types(*ends) for other in asked.kinds_by_type.get(key, ()))

    return Schema(tuple(names), tuple(filterfalse(is_requested, wanted.kinds)), wanted.strict)


def _n_types(schema: Schema) -> int:
    return len(schema.types_by_key) + len(schema.kinds)


class RequestHistory:
    """All chains of schemas that were requested for an index, oldest first."""

    def __init__(self, text: str | None = None) -> None:
        self.chains: list[SchemaChain] = [
            tuple(
                Schema(tuple(names), tuple(RelationshipKind(*kind) for kind in kinds), strict)
                for names, kinds, strict in chain
            )
            for chain in json.loads(text or "[]")
        ]

    def as_json(self) -> str:
        """Serialize the chains to JSON."""
        chains = [[(s.entity_types, s.kinds, s.strict) for s in chain] for chain in self.chains]
        return json.dumps(chains, ensure_ascii=False)

    def next_schemas(self, chain: SchemaChain) -> list[Schema]:
        """Return, for each stored chain that begins with `chain`, the schema after that part."""
        n = len(chain)
        longer = (other for other in self.chains if len(other) > n and other[:n] == chain)
        return list(dict.fromkeys(other[n] for other in longer))

    def find_chain(self, chain: SchemaChain) -> SchemaChain | None:
        """Return the stored chain with the same types, perhaps spelled differently, or None."""
        keys = [schema.identity for schema in chain]
        begins = (other[: len(chain)] for other in self.chains)
        return next((own for own in begins if [schema.identity for schema in own] == keys), None)

    def removed_types(self, wanted: Schema) -> tuple[frozenset[str], frozenset[str]]:
        """Return the keys of removed types: (types of entities, types of relationships).

        A removed type was requested earlier and is not in `wanted`. If the model may choose types,
        no type counts as removed.
        """
        schemas = [schema for chain in self.chains for schema in chain]
        names = frozenset(key for schema in schemas for key in schema.types_by_key)
        kinds = frozenset(key for schema in schemas for key in schema.kinds_by_type)
        return (
            names - wanted.types_by_key.keys() if wanted.entity_types else frozenset(),
            kinds - wanted.kinds_by_type.keys() if wanted.kinds else frozenset(),
        )


@dataclass(frozen=True)
class PassagePrompt:
    """The variable part of a prompt: a text unit, its label in messages, and its headings."""

    passage: Passage
    label: str
    headings: str


class EarlierReplies(Protocol):
    """The stored chains and replies: a chat model with its ledger."""

    def get_meta(self, name: str) -> str | None: ...

    def set_meta(self, name: str, value: str) -> None: ...

    def cached_values(self, request: Request) -> tuple[Any, ...]: ...


class ExtractionPrompt:
    """Builder of the requests that ask for the types in the settings.

    Types for which a reply is cached are not requested again.
    """

    def __init__(
        self, wanted: Schema, max_gleanings: int, prompts: Prompts, chat_model: EarlierReplies
    ) -> None:
        self.wanted, self.max_gleanings = wanted, max_gleanings
        self.prompts, self.chat_model = prompts, chat_model
        self.history = RequestHistory(chat_model.get_meta(HISTORY_KEY))
        gleans = max_gleanings > 0
        self.continuing = prompts.fill("continue_extraction", {}).strip() if gleans else ""
        # The reply format and the system message for the last schema of each chain.
        self._formats: dict[SchemaChain, tuple[ExtractionFormat, Message]] = {}
        # True if no other types were ever requested. Then requests differ only in their text.
        self.is_uniform = not set(self.history.chains) - {(wanted,)}
        self._removed = self.history.removed_types(wanted)
        # Cache of `choose_chain`, by the chains for which a text unit has cached replies.
        self._chosen: dict[tuple[SchemaChain, ...], SchemaChain] = {}

    def build_first_request(self, passage: PassagePrompt) -> Request:
        """Build the first request about a text unit. Requests for missing types come next."""
        answered: tuple[SchemaChain, ...] = ()
        if not self.is_uniform:
            answered = tuple(self._answered_chains(passage, (), FoundRecords()))
        if answered not in self._chosen:
            chain = choose_chain(answered, self.wanted)
            stored = self.history.find_chain(chain)
            if stored is None:
                # Store the chain before its requests are sent. Then a later run finds the replies.
                self.history.chains.append(chain)
                self.chat_model.set_meta(HISTORY_KEY, self.history.as_json())
            self._chosen[answered] = stored or chain
        return self._build_request(passage, self._chosen[answered], 0, FoundRecords())

    def merge_replies(self, replies: Sequence[FoundRecords]) -> FoundRecords:
        """Merge the replies about one text unit, and drop records of removed types."""
        found = merge_replies(replies)
        return found if self.is_uniform else drop_removed_types(found, self.wanted, self._removed)

    def _answered_chains(
        self, passage: PassagePrompt, chain: SchemaChain, found: FoundRecords
    ) -> Iterator[SchemaChain]:
        """Yield the chains with cached replies. Shorter chains come before their extensions."""
        for schema in self.history.next_schemas(chain):
            longer = (*chain, schema)
            if not longer[0].is_comparable(self.wanted):
                continue
            request = self._build_request(passage, longer, len(chain), found)
            if values := self.chat_model.cached_values(request):
                yield longer
                yield from self._answered_chains(passage, longer, merge_replies([found, *values]))

    def _build_request(
        self, passage: PassagePrompt, chain: SchemaChain, n_done: int, found: FoundRecords
    ) -> Request:
        """Build the request for `chain[n_done]`. `found` are the records of earlier schemas."""
        asked = chain[: n_done + 1]
        if asked not in self._formats:
            self._formats[asked] = ExtractionFormat(asked), _system_message(asked, self.prompts)
        extraction, system = self._formats[asked]
        is_last = n_done + 1 == len(chain)

        def build_round(
            messages: Sequence[Message], found: FoundRecords, own: FoundRecords, n: int
        ) -> Request:
            """Build the request (`n` = 0) or gleaning `n`. `own` are records of this schema."""

            def next_request(value: FoundRecords) -> Request | None:
                now = merge_replies([found, value])
                if n < self.max_gleanings and now != found:
                    reply = Message(role="assistant", content=_records_as_json(value))
                    gleaning = Message(role="user", content=self.continuing)
                    own_now = merge_replies([own, value])
                    return build_round([*messages, reply, gleaning], now, own_now, n + 1)
                return None if is_last else self._build_request(passage, chain, n_done + 1, now)

            format = extraction.reply_format(passage.passage.find_name, found, own)
            may_follow = n < self.max_gleanings or not is_last
            return Request(
                passage.label, messages, format, then=next_request if may_follow else None
            )

        about = format_subject(passage.passage.subject, passage.passage.text, passage.headings)
        known = f"{_format_known_entities(found)}\n\n" if n_done else ""

        def build(text: str) -> Request:
            content = f"{known}{about}Passage:\n{quote_text(text)}"
            user = Message(role="user", content=content)
            return build_round([system, user], found, FoundRecords(), 0)

        return ask_in_parts(build, passage.passage.text)


def _system_message(chain: SchemaChain, prompts: Prompts) -> Message:
    """Return the system message that asks for the types in the last schema of a chain.

    The message is equal for all text units, so that providers can cache it.
    """
    values = _describe_types(merge_schemas(chain))
    if len(chain) == 1:
        return Message(role="system", content=prompts.fill("extract_graph", values).strip())
    # Restrict only the added types: new entities may have relationships of all types.
    name = "entity_types" if chain[-1].entity_types else "relationship_types"
    values[name] = _describe_types(replace(chain[-1], strict=True))[name]
    wanted = {"wanted": "\n".join(_describe_added_types(chain[-1]))}
    texts = (prompts.fill("extract_graph", values), prompts.fill("add_types", wanted))
    return Message(role="system", content="\n\n".join(map(str.strip, texts)))


def _describe_types(schema: Schema) -> dict[str, str]:
    texts = REPLY_WORDS["wanted_types"]
    otherwise = texts["strict" if schema.strict else "not_strict"]
    listed = {
        "entity_types": ", ".join(schema.types_by_key.values()),
        "relationship_types": _describe_relationship_types(schema),
    }
    return {
        name: f"one of: {types}. {otherwise}" if types else texts[name]
        for name, types in listed.items()
    }


def _describe_added_types(added: Schema) -> Iterator[str]:
    """Yield the lines of the prompt that list the added types."""
    names, kinds = ", ".join(added.types_by_key.values()), _describe_relationship_types(added)
    if names:
        yield f"- entities of these types: {names}"
        yield "- relationships that join one of these new entities with another, known or new"
    if kinds:
        yield f"- relationships of these types, between known or new entities: {kinds}"
    if not names:
        yield "- of entities that are not known, only those that such a relationship joins"


def _describe_relationship_types(schema: Schema) -> str:
    """Return the types of relationships with the types of entities that they join."""
    types = []
    for kinds in schema.kinds_by_type.values():
        joins = [
            f"{kind.source or 'anything'} → {kind.target or 'anything'}"
            for kind in kinds
            if kind.source or kind.target
        ]
        types.append(f"{kinds[0].type} ({', '.join(joins)})" if joins else kinds[0].type)
    return "; ".join(types)


def _format_known_entities(found: FoundRecords) -> str:
    """Return the known entities as lines of a prompt, each in the first spelling of its name."""
    named: dict[str, str] = {}
    for entity in found.entities:
        kind = f" ({entity.type})" if entity.type else ""
        named.setdefault(title_key(entity.name), f"- {entity.name}{kind}")
    return "\n".join(["Known entities:", *(named.values() or ["none"])])


def _records_as_json(found: FoundRecords) -> str:
    value = {name: [record._asdict() for record in getattr(found, name)] for name in found._fields}
    return json.dumps(value, ensure_ascii=False)


def merge_replies(replies: Sequence[FoundRecords]) -> FoundRecords:
    """Merge the replies about one text unit. A later reply adds only new records."""
    if len(replies) == 1:
        return replies[0]
    entities: dict[tuple[str, str, str], FoundEntity] = {}
    links: dict[tuple[str, str, str], FoundRelationship] = {}
    for found in replies:
        new = [link for link in found.relationships if _relationship_key(link) not in links]
        links.update((_relationship_key(link), link) for link in new)
        for entity in found.entities:
            key = title_key(entity.name), type_key(entity.type), entity.description
            entities.setdefault(key, entity)
    return FoundRecords(tuple(entities.values()), tuple(links.values()))


def _relationship_key(link: FoundRelationship) -> tuple[str, str, str]:
    return title_key(link.source), title_key(link.target), type_key(link.type)

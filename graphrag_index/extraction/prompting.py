"""What is asked about a passage, and what after a reply."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from graphrag_index.extraction.added_types import AddedFormat
from graphrag_index.extraction.alignment import Passage
from graphrag_index.extraction.graph_reply import ExtractionFormat
from graphrag_index.extraction.removed_types import Narrowing
from graphrag_index.extraction.reply_records import Found, FoundEntity, FoundRelationship, clean
from graphrag_index.extraction.schema_history import (
    History,
    Path,
    Schema,
    choose_path,
    type_key,
    whole,
)
from graphrag_index.llm.chat_model import ChatModel
from graphrag_index.llm.prompts import Prompts
from graphrag_index.llm.request import Message, ReplyFormat, Request
from graphrag_index.text.normalize import title_key

# Under this name the schemas that were asked for are remembered beside the replies.
HISTORY = "schemas of extract_graph"


@dataclass(frozen=True)
class Asked:
    """What one text unit is asked about, and its name for people."""

    passage: Passage
    label: str
    headings: str


class Asking:
    """Asks text units for the wanted types: those that were never asked for, and no other."""

    def __init__(
        self, wanted: Schema, max_gleanings: int, prompts: Prompts, chat_model: ChatModel
    ) -> None:
        self.wanted, self.max_gleanings = wanted, max_gleanings
        self.prompts, self.chat_model = prompts, chat_model
        self.history = History(chat_model.get_meta(HISTORY))
        self.continuing = ""
        if max_gleanings:
            self.continuing = prompts.fill("continue_extraction", {}).strip()
        self._words: dict[Path, _Words] = {}
        self._narrowing: Narrowing | None = None
        # Where nothing but what is wanted was ever asked for, no reply has anything else.
        if set(self.history.paths) - {(wanted,)}:
            self._narrowing = Narrowing(wanted, self.history.taken_out(wanted))
        # What was chosen for text units that have replies to the same paths.
        self._chosen: dict[tuple[Path, ...], Path] = {}

    @property
    def asks_all_the_same(self) -> bool:
        """Whether no text unit is asked otherwise for what was asked before."""
        return self._narrowing is None

    def request(self, asked: Asked) -> Request:
        """Return the request to which there may be replies, followed by what they lack."""
        answered = tuple(self._answered(asked, (), Found())) if self._narrowing else ()
        if answered not in self._chosen:
            path = choose_path(answered, self.wanted)
            self._chosen[answered] = self.history.find(path) or self._remember(path)
        return self._request(asked, self._chosen[answered], 0, Found())

    def together(self, replies: Sequence[Found]) -> Found:
        """Put the replies about one text unit together, as far as they are wanted."""
        found = together(replies)
        return self._narrowing.narrow(found) if self._narrowing else found

    def _remember(self, path: Path) -> Path:
        """Note a path before its requests are sent, so that their replies will be found."""
        self.history.paths.append(path)
        self.chat_model.set_meta(HISTORY, self.history.text())
        return path

    def _answered(self, asked: Asked, path: Path, found: Found) -> Iterator[Path]:
        """Give the paths that there are replies to, each after those that it goes on from."""
        for schema in self.history.after(path):
            longer = (*path, schema)
            if not longer[0].is_kin(self.wanted):
                continue
            values = self.chat_model.cached_values(self._request(asked, longer, len(path), found))
            if values:
                yield longer
                yield from self._answered(asked, longer, together([found, *values]))

    def _request(self, asked: Asked, path: Path, n_done: int, found: Found) -> Request:
        """Ask for the next schema of a path, where those before it gave what was found."""
        words = self._words_of(path[: n_done + 1])
        section = f"Section: {clean(asked.headings)}\n\n" if asked.headings else ""
        known = f"{_known_in_words(found)}\n\n" if n_done else ""
        user = Message(role="user", content=f"{known}{section}Passage:\n{asked.passage.text}")
        messages = [words.system, user]
        return self._ask(asked, path, n_done, messages, found, Found(), 0)

    def _ask(
        self,
        asked: Asked,
        path: Path,
        n_done: int,
        messages: Sequence[Message],
        found: Found,
        own: Found,
        n: int,
    ) -> Request:
        """Ask once; `own` is what earlier replies to the same question gave."""
        then: Callable[[Any], Request | None] | None = None
        if n < self.max_gleanings or n_done + 1 < len(path):

            def then(value: Found) -> Request | None:
                now = together([found, value])
                if n < self.max_gleanings and now != found:
                    more = [
                        *messages,
                        Message(role="assistant", content=_as_json(value)),
                        Message(role="user", content=self.continuing),
                    ]
                    said = together([own, value])
                    return self._ask(asked, path, n_done, more, now, said, n + 1)
                if n_done + 1 < len(path):
                    return self._request(asked, path, n_done + 1, now)
                return None

        format = self._words_of(path[: n_done + 1]).format(asked.passage, found, own)
        return Request(asked.label, messages, format, then=then)

    def _words_of(self, path: Path) -> "_Words":
        if path not in self._words:
            self._words[path] = _Words(path, self.prompts)
        return self._words[path]


class _Words:
    """What the last request of a path says to the model, and how its reply is read."""

    def __init__(self, path: Path, prompts: Prompts) -> None:
        self.first = ExtractionFormat(path[0])
        self.added = AddedFormat(path) if len(path) > 1 else None
        values = _added_in_words(path) if self.added else _schema_in_words(path[0])
        texts = [prompts.fill("extract_graph", values).strip()]
        if self.added:
            wanted = {"wanted": "\n".join(_wanted_in_words(path[-1]))}
            texts.append(prompts.fill("add_types", wanted).strip())
        # The same for all text units, so that a provider's cache serves it.
        self.system = Message(role="system", content="\n\n".join(texts))

    def format(self, passage: Passage, found: Found, own: Found) -> ReplyFormat:
        known: dict[str, FoundEntity] = {}
        for entity in found.entities:
            known.setdefault(title_key(entity.name), entity)
        if self.added:
            return self.added.reply_format(passage.contains, known, own)
        return self.first.reply_format(passage.contains, known)


def _schema_in_words(schema: Schema) -> dict[str, str]:
    """Return what the prompt says about types."""
    entity_types = "one or two words in lower case, such as person, organization, place or event."
    link_types = "a short verb phrase in lower case, such as works for or is part of."
    otherwise = (
        " Leave out what has none of these types."
        if schema.strict
        else " Only where none of these fits, a short one of your own."
    )
    if schema.entity_types:
        entity_types = f"one of: {', '.join(schema.names.values())}.{otherwise}"
    if schema.kinds:
        link_types = f"one of: {'; '.join(_joined_types(schema))}.{otherwise}"
    return {"entity_types": entity_types, "relationship_types": link_types}


def _added_in_words(path: Path) -> dict[str, str]:
    """Return what the prompt says about types where some were added."""
    asked = _schema_in_words(whole(path))
    only = _schema_in_words(replace(path[-1], strict=True))
    # New entities may have relationships of any type.
    name = "entity_types" if path[-1].entity_types else "relationship_types"
    return {**asked, name: only[name]}


def _wanted_in_words(added: Schema) -> Iterator[str]:
    """Say which records a request for added types wants."""
    names, kinds = ", ".join(added.names.values()), "; ".join(_joined_types(added))
    if names:
        yield f"- entities of these types: {names}"
        yield "- relationships that join one of these new entities with another, known or new"
    if kinds:
        yield f"- relationships of these types, between known or new entities: {kinds}"
    if not names:
        yield "- of entities that are not known, only those that such a relationship joins"


def _joined_types(schema: Schema) -> Iterator[str]:
    """Name each type of relationship, and what it joins."""
    for kinds in schema.joined.values():
        joins = [
            f"{kind.source or 'anything'} → {kind.target or 'anything'}"
            for kind in kinds
            if kind.source or kind.target
        ]
        yield f"{kinds[0].type} ({', '.join(joins)})" if joins else kinds[0].type


def _known_in_words(found: Found) -> str:
    """List the entities that were found before, as they were named first."""
    named: dict[str, str] = {}
    for entity in found.entities:
        kind = f" ({entity.type})" if entity.type else ""
        named.setdefault(title_key(entity.name), f"- {entity.name}{kind}")
    return "\n".join(["Known entities:", *(named.values() or ["none"])])


def _as_json(found: Found) -> str:
    """Write what was found as the model might have."""
    value = {
        "entities": [entity._asdict() for entity in found.entities],
        "relationships": [link._asdict() for link in found.relationships],
    }
    return json.dumps(value, ensure_ascii=False)


def together(replies: Sequence[Found]) -> Found:
    """Put the replies about one text unit together; a later one adds only what is new."""
    if len(replies) == 1:
        return replies[0]
    entities: dict[tuple[str, str, str], FoundEntity] = {}
    links: dict[tuple[str, str, str], FoundRelationship] = {}
    for found in replies:
        new = [link for link in found.relationships if _link_key(link) not in links]
        links.update((_link_key(link), link) for link in new)
        for entity in found.entities:
            key = title_key(entity.name), type_key(entity.type), entity.description
            entities.setdefault(key, entity)
    return Found(tuple(entities.values()), tuple(links.values()))


def _link_key(link: FoundRelationship) -> tuple[str, str, str]:
    return title_key(link.source), title_key(link.target), type_key(link.type)

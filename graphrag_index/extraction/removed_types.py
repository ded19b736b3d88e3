"""What of the replies about a text unit is still wanted, when types were taken out."""

from collections.abc import Iterable, Set
from itertools import product

from graphrag_index.extraction.graph_reply import ExtractionFormat
from graphrag_index.extraction.reply_records import Found, FoundEntity, FoundRelationship
from graphrag_index.extraction.schema_history import Schema, type_key
from graphrag_index.text.normalize import title_key


class Narrowing:
    """Leaves out what has a type that was taken out, and spells types as the settings do.

    Parameters
    ----------
    wanted
        What the settings ask for.
    taken_out
        Keys of the types of entities and of relationships that nobody wants any more.
    """

    def __init__(self, wanted: Schema, taken_out: tuple[Set[str], Set[str]]) -> None:
        self.format = ExtractionFormat(wanted)
        self.entity_types, self.link_types = taken_out

    def narrow(self, found: Found) -> Found:
        """Return what is wanted, in the order in which it was found.

        With an entity go its relationships; with a relationship goes what was found as one of
        its ends alone, which has no type and no description.
        """
        entities = [self._spelled(e) for e in found.entities if self._is_wanted(e)]
        named: dict[str, list[FoundEntity]] = {}
        for entity in entities:
            named.setdefault(title_key(entity.name), []).append(entity)
        links = [link for link in found.relationships if self._may_stay(link, named)]
        if len(links) < len(found.relationships):
            joined, loose = _ends(links), _ends(found.relationships)
            entities = [
                entity
                for entity in entities
                if entity != FoundEntity(entity.name)
                or title_key(entity.name) not in loose - joined
            ]
        types = self.format.link_types
        return Found(
            tuple(entities),
            tuple(link._replace(type=types.get(type_key(link.type), link.type)) for link in links),
        )

    def _is_wanted(self, entity: FoundEntity) -> bool:
        return type_key(entity.type) not in self.entity_types

    def _spelled(self, entity: FoundEntity) -> FoundEntity:
        return entity._replace(
            type=self.format.entity_types.get(type_key(entity.type), entity.type)
        )

    def _may_stay(self, link: FoundRelationship, named: dict[str, list[FoundEntity]]) -> bool:
        ends = [named.get(title_key(end), []) for end in (link.source, link.target)]
        key = type_key(link.type)
        if not all(ends) or key in self.link_types:
            return False
        # An entity that was found under several types takes part under each.
        return not self.format.strict or any(
            self.format.may_join(key, source, target) for source, target in product(*ends)
        )


def _ends(links: Iterable[FoundRelationship]) -> set[str]:
    return {title_key(end) for link in links for end in (link.source, link.target)}

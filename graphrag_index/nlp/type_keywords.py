"""Words that tell what kind of thing a name is for."""

from graphrag_index.text.word_lists import read_lists, word_set

_LISTS = read_lists("nlp/data/words")
ORGANIZATIONS, PLACES = word_set(_LISTS["organizations"]), word_set(_LISTS["places"])
EVENTS = word_set(_LISTS["events"])
KINDS = ORGANIZATIONS | PLACES | EVENTS
SURNAMES = word_set(_LISTS["surnames"])


def type_of(name: str, person: bool, place_share: float, preposition_share: float) -> str:
    """Return the type of a name, by its words and its usage.

    The shares are those of its mentions behind a preposition of place, and behind any.
    """
    words = [word.lower().rstrip(".,") for word in name.split(" ")]
    # World War II, West Virginia Route 9
    if len(words) > 2 and (words[-1].isdigit() or not words[-1].strip("ivx")):
        words.pop()
    if not (person and words[-1] in SURNAMES):
        for index in (-1, 0):
            for kind, known in (
                ("organization", ORGANIZATIONS),
                ("geo", PLACES),
                ("event", EVENTS),
            ):
                if words[index] in known and len(words) > 1:
                    return kind
    if person:
        return "person"
    if any(word in ORGANIZATIONS for word in words[1:-1]):
        return "organization"
    if len(words) == 1 and name.isupper():
        return "acronym"
    placed = place_share >= 0.4 or (place_share >= 0.15 and preposition_share >= 0.45)
    return "geo" if placed else "name"

"""Head nouns that stand alone for a name in their document: "the Institute"."""

from collections import Counter, defaultdict

from graphrag_nlp.names.known_names import find_known_type
from graphrag_nlp.names.name_forms import MergedNames, Words
from graphrag_nlp.names.name_words import TYPE_WORDS
from graphrag_nlp.names.names_by_document import NamesByDocument
from graphrag_nlp.text.languages import PARTICLES


def resolve_head_nouns(
    names: MergedNames, full_names: dict[int, Words], by_document: NamesByDocument
) -> dict[tuple[int, int], int]:
    """Map "(the) Institute" to the only name of an institute in its document.

    `full_names` are the names of persons. A word that mostly stands without a longer name is a
    name of its own, as Taliban is beside Pakistani Taliban. If the corpus also writes it in lower
    case, it may still be short for a name whose documents mostly use it.
    """
    heads = {
        number: words[0]
        for number, words in enumerate(names.words)
        if len(words) == 1
        and names.find_root(number) == number
        and (words[0].lower() in TYPE_WORDS or names.is_thing[number])
    }
    found: dict[tuple[int, int], int] = {}
    n_documents: Counter[str] = Counter()
    n_headed: Counter[str] = Counter()
    for document, present in by_document.of_documents_with(heads):
        alone = [name for name in present if name in heads]
        headed: dict[str, set[int]] = defaultdict(set)
        for name in present:
            words = names.words[name]
            if len(words) > 1 and name not in full_names:
                # The head noun is before the particle: University of Oslo.
                particle = next((i for i, w in enumerate(words) if w.islower()), len(words))
                is_known = particle == len(words) and find_known_type(" ".join(words[-2:]))
                if is_known and words[-2].lower() not in TYPE_WORDS | PARTICLES:
                    continue  # The House is not the White House, but Baikal is Lake Baikal.
                headed[words[particle - 1]].add(names.find_root(name))
        here = {heads[name] for name in alone}
        n_documents.update(here)
        n_headed.update(here & headed.keys())
        for name in alone:
            fitting = headed.get(heads[name], set())
            if len(fitting) == 1:
                found[document, name] = min(fitting)
    used = {(heads[name], document): entity for (document, name), entity in found.items()}
    n_used = Counter((word, entity) for (word, _), entity in used.items())
    longer = set(found.values())
    roots = {number: names.find_root(number) for number in range(len(names.words))}
    n_longer = by_document.count_documents({n: r for n, r in roots.items() if r in longer})

    def is_short_form(word: str, entity: int) -> bool:
        if n_headed[word] * 2 >= n_documents[word]:
            return True
        is_noun = word in names.written_lower or word.lower() in names.written_lower
        return is_noun and n_used[word, entity] * 2 >= n_longer[entity]

    return {key: entity for key, entity in found.items() if is_short_form(heads[key[1]], entity)}

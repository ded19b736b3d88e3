"""Questions of each kind from facts, in the words of the sentences that state the facts."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass

from graphrag_evaluation.generation.facts import Fact, fact_words, names_subject
from graphrag_evaluation.questions import EvaluationQuestion, GoldSpan
from graphrag_nlp.text.languages import word_set
from graphrag_nlp.text.normalize import fold
from graphrag_nlp.text.sentences import are_near_duplicates, distinctive_words

# How a subject is asked for and described, by the type of its entity.
_ASKED = {"person": "Who", "geo": "Who or what", "organization": "Who or what"}
_DESCRIBED = {"person": "the person who", "geo": "the one that", "organization": "the one that"}
_PLACE = re.compile(r"\b(?:in|at|near)\s$")
# A longer description of a thing is hard to read inside a question.
MAX_DESCRIPTION_WORDS = 16
# A name after these words cannot be exchanged for another.
_BOUND_NAME = re.compile(r"(?:\b(?:the|an?|mr|mrs|ms|dr|president|minister|leader)|['’]s) $", re.I)
MIN_STATEMENTS, MAX_STATEMENTS, MIN_DOCUMENTS = 4, 12, 3
# Years between two facts that are compared.
MIN_YEARS_APART = 1


@dataclass(frozen=True)
class Draft:
    """A question with the sentences that it is made of.

    `hidden` are the names of the thing that a question in two hops describes.
    """

    kind: str
    text: str
    answers: tuple[str, ...]
    spans: tuple[GoldSpan, ...]
    statements: tuple[str, ...] = ()
    is_answerable: bool = True
    hidden: tuple[str, ...] = ()

    def question(self, number: int, split: str) -> EvaluationQuestion:
        """Return the question with its gold spans; a refused one has none."""
        spans = self.spans if self.is_answerable else ()
        return EvaluationQuestion(
            id=f"{self.kind}-{number}",
            text=" ".join(self.text.split()),
            kind=self.kind,
            documents=tuple(dict.fromkeys(span.document for span in spans)),
            spans=tuple(dict.fromkeys(spans)),
            statements=self.statements,
            answers=self.answers,
            is_answerable=self.is_answerable,
            split=split,
        )


def drop_conflicts(facts: Sequence[Fact]) -> list[Fact]:
    """Leave out facts that give one statement the times of different years."""
    years: dict[str, set[int]] = defaultdict(set)
    statements = [fold(f"{fact.subject} {fact.before_time}") for fact in facts]
    for fact, statement in zip(facts, statements, strict=True):
        if fact.time:
            years[statement].add(fact.year)
    return [
        fact
        for fact, statement in zip(facts, statements, strict=True)
        if not fact.time or len(years[statement]) == 1
    ]


def ask_for_subject(fact: Fact) -> Draft:
    """Ask who or what a predicate is true of: "Who led the Nimrod expedition?"."""
    asked = _ASKED.get(fact.subject_type, "What")
    return Draft("local", f"{asked} {fact.predicate}?", fact.subject_names, (fact.span,))


def ask_for_place(fact: Fact, subject: str = "") -> Draft | None:
    """Ask where something was done: "Where was Tom Crean born?"; None if the fact has no place."""
    words = fact.predicate.split()
    if words[0] != "was" or words[1] not in word_set(fact_words()["placed_participles"]):
        return None
    for title, (name, kind) in fact.named.items():
        before, found, _ = fact.predicate.partition(name)
        if kind == "geo" and found and _PLACE.search(before):
            text = f"Where was {subject or fact.article + fact.subject} {words[1]}?"
            return Draft("local", text, tuple(dict.fromkeys((name, title))), (fact.span,))
    return None


def ask_for_time(fact: Fact, subject: str = "") -> Draft | None:
    """Ask when a fact happened; None if it has no time, or two verbs."""
    verb, _, rest = fact.before_time.partition(" ")
    asked = subject or fact.article + fact.subject
    base = fact_words()["past_tenses"].get(verb)
    words = rest.split()
    ends_well = verb == "died" or (words and words[-1] not in word_set(fact_words()["loose_ends"]))
    if not fact.time or "and" in words or not ends_well:
        return None
    if verb == "was":
        participles = word_set(fact_words()["participles"])
        if words[0] not in participles and not words[0].endswith("ed"):
            return None
        text = f"When was {asked} {rest}?"
    elif base:
        text = f"When did {asked} {base}{' ' + rest if rest else ''}?"
    else:
        return None
    answers = dict.fromkeys((fact.time, str(fact.year)))
    return Draft("temporal", text, tuple(answers), (fact.span,))


def ask_in_two_hops(first: Fact, second: Fact) -> Iterator[Draft]:
    """Ask about the subject of a second fact, which only the first fact names.

    "When was the person who led the Nimrod expedition born?"
    """
    verb, *words = first.predicate.split()
    passing = ("has", "will", *fact_words()["statement_verbs"].split())
    if len(words) >= MAX_DESCRIPTION_WORDS or verb in passing or _repeats(first, second):
        return
    spans, hidden = (first.span, second.span), first.subject_names
    described = f"{_DESCRIBED.get(first.subject_type, 'the thing that')} {first.predicate}"
    if first.subject == second.subject:
        for draft in (ask_for_time(second, described), ask_for_place(second, described)):
            if draft and not any(fold(a) in fold(first.predicate) for a in draft.answers):
                yield Draft("two-hop", draft.text, draft.answers, spans, hidden=hidden)
    elif first.subject in second.named:
        name, _ = second.named[first.subject]
        if second.predicate.endswith(f" {name}") and not names_subject(first.predicate, second):
            before = ask_for_subject(second).text.removesuffix(f"{name}?").removesuffix("the ")
            text = f"{before}{described}?"
            yield Draft("two-hop", text, second.subject_names, spans, hidden=hidden)


def _repeats(first: Fact, second: Fact) -> bool:
    """Return whether two facts say the same of two things."""
    words = [distinctive_words(fact.predicate) for fact in (first, second)]
    return are_near_duplicates(*words)


def compare_times(first: Fact, second: Fact) -> Draft | None:
    """Ask which of two facts happened first; None if their years do not tell."""
    if not first.time or not second.time or abs(first.year - second.year) < MIN_YEARS_APART:
        return None
    earlier = min((first, second), key=lambda fact: fact.year)
    for predicate in fact_words()["compared"]:
        same = all(fact.predicate.startswith(f"{predicate} ") for fact in (first, second))
        if same and first.subject_type == second.subject_type and first.subject != second.subject:
            who = "Who" if first.subject_type == "person" else "Which"
            names = [fact.article + fact.subject for fact in (first, second)]
            text = f"{who} {predicate} earlier, {names[0]} or {names[1]}?"
            return Draft("comparison", text, earlier.subject_names, (first.span, second.span))
    said = [f"{fact.article}{fact.subject} {fact.before_time}" for fact in (first, second)]
    text = f"What happened first: {said[0]}, or {said[1]}?"
    answer = said[0] if earlier is first else said[1]
    return Draft("comparison", text, (answer,), (first.span, second.span))


def ask_about_everything(facts: Sequence[Fact], broad: Set[str] = frozenset()) -> Iterator[Draft]:
    """Ask what all documents tell about a subject of many facts; names in `broad` are left out."""
    of_name: dict[str, list[Fact]] = defaultdict(list)
    for fact in facts:
        for name in (fact.subject, *fact.named):
            of_name[name].append(fact)
    for name, about in of_name.items():
        by_sentence = {fold(fact.sentence): fact for fact in about}
        kept = list(by_sentence.values())[:MAX_STATEMENTS]
        n_documents = len({fact.span.document for fact in kept})
        if name not in broad and len(kept) >= MIN_STATEMENTS and n_documents >= MIN_DOCUMENTS:
            statements = tuple(fact.sentence for fact in kept)
            text = f"What do the documents tell about {name}?"
            yield Draft("whole-corpus", text, (), tuple(fact.span for fact in kept), statements)


def exchange_names(
    facts: Sequence[Fact],
    holds: Callable[[str], bool],
    shuffle: Callable[[list[tuple[Fact, Fact]]], None],
) -> Iterator[Draft]:
    """Ask about people that no document names: the first name of one, the surname of another.

    `holds` tells whether a text of the corpus has a name.
    """
    people = {fact.subject: fact for fact in facts if fact.subject_type == "person"}
    names = [name for name in people if len(name.split()) == 2]
    mixed = [(people[a], people[b]) for a in sorted(names) for b in sorted(names) if a != b]
    shuffle(mixed)
    # Questions that presume a fact come first: they are harder to refuse.
    is_late = {name: _presume(people[name], "") is None for name in names}
    mixed.sort(key=lambda pair: is_late[pair[0].subject])
    asked = set()
    for one, other in mixed:
        name = f"{one.subject.split()[0]} {other.subject.split()[-1]}"
        if name in asked or holds(name):
            continue
        asked.add(name)
        draft = _presume(one, name)
        text = draft.text if draft else f"What is known about {name}?"
        yield Draft("unanswerable", text, (), (one.span, other.span), is_answerable=False)


def _presume(fact: Fact, name: str) -> Draft | None:
    return ask_for_place(fact, name) or ask_for_time(fact, name)


def exchange_objects(
    facts: Sequence[Fact], others: Sequence[str], are_related: Callable[[str, str], bool]
) -> Iterator[Draft]:
    """Ask for the subject of a predicate in which one name is another of the same type.

    `are_related` tells whether a passage of the corpus names two entities.
    """
    types = {title: kind for fact in facts for title, (_, kind) in fact.named.items()}
    for i, fact in enumerate(facts):
        if len(fact.named) < 2:
            continue
        title, (name, kind) = list(fact.named.items())[-1]
        if kind not in _DESCRIBED or _BOUND_NAME.search(fact.predicate.partition(name)[0]):
            continue
        fitting = [other for other in others if types.get(other) == kind and other != title]
        fitting = [other for other in fitting if fold(other) not in fold(fact.sentence)]
        if not fitting or fact.predicate.count(name) != 1:
            continue
        other = fitting[i % len(fitting)]
        if not any(are_related(other, named) for named in (fact.subject, *fact.named)):
            asked = _ASKED.get(fact.subject_type, "What")
            text = f"{asked} {fact.predicate.replace(name, other)}?"
            yield Draft("unanswerable", text, (), (fact.span,), is_answerable=False)

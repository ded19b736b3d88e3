"""Answers in themes: a numbered list of headings and cited sentences, within a word budget."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from graphrag_nlp.text.languages import map_words_to_languages
from graphrag_nlp.text.sentences import are_near_duplicates, distinctive_words
from graphrag_query.answer import Answer, Citation
from graphrag_query.answering.cited_text import best_sentence
from graphrag_query.answering.extractive import as_one_line, cite_passage
from graphrag_query.answering.report_sentences import locate_sentence
from graphrag_query.question.question import Question

# Number of words of a long sentence. Each further word lowers the score by this penalty.
LONG_SENTENCE = 25
LONG_SENTENCE_PENALTY = 0.005
# Maximum number of names of a theme in a list of themes without sentences.
MAX_NAMES_IN_LIST = 2
# Maximum number of words of a name there.
MAX_WORDS_IN_LIST = 6
# Maximum number of words of a heading with several subjects.
MAX_WORDS_OF_TITLE = 12
# Maximum number of sentences of one theme.
MAX_SENTENCES_OF_THEME = 6

# How much more often a theme of more weight has a turn: little, so that many themes are told.
WEIGHT_POWER = 0.25


@dataclass(frozen=True, eq=False)
class Point:
    """A sentence for the answer, and the number of the text unit that supports it.

    The label is shown before the sentence: its speaker, or the row and column of a table.
    """

    text: str
    source: int
    score: float
    label: str = ""

    @property
    def quotation(self) -> str:
        """The sentence after its label."""
        return f"{self.label}: {self.text}" if self.label else self.text


@dataclass(eq=False)
class Theme:
    """A theme of the answer: its heading, its possible sentences, and the chosen ones.

    The more weight, the more sentences it gets.
    """

    name: str
    extent: str  # how much of the corpus belongs to it, such as "3 documents"
    cited_as: str  # citation of the row that it is about
    points: list[Point]
    weight: float = 1.0
    chosen: list[Point] = field(default_factory=list)

    @property
    def heading(self) -> str:
        """The line above the sentences."""
        extent = f" ({self.extent})" if self.extent else ""
        return f"**{limit_title(self.name)}**{extent} {self.cited_as}".rstrip()

    @property
    def n_words(self) -> int:
        """The number of words of the heading; its citation is no word."""
        return len(limit_title(self.name).split()) + len(self.extent.split())

    @property
    def short_heading(self) -> str:
        """The text in a list of themes without sentences: the first names and the share."""
        if self.extent and "%" not in self.extent:
            return self.name
        # A semicolon stands between themes.
        theme = shorten_title(self.name).replace("; ", ", ")
        names = ", ".join(theme.split(", ")[:MAX_NAMES_IN_LIST])
        # The headline of a document may be a sentence.
        names = _cut_words(names, MAX_WORDS_IN_LIST)
        return f"{names} ({self.extent})" if self.extent else names


def shorten_title(title: str) -> str:
    """Return the theme in the title of a report without a model, which names may follow.

    A report on different subjects has the form "Different subjects: fires (Rome); race (Ann)".
    """
    theme, _, rest = title.partition(": ")
    subjects = rest.split("; ")
    return ", ".join(subjects[:MAX_NAMES_IN_LIST]) if len(subjects) > 1 else theme


def first_subject(title: str) -> str:
    """Return the theme in the title of a report, or the first of its different subjects."""
    theme, _, rest = title.partition(": ")
    first, mark, _ = rest.partition("; ")
    return first if mark else theme


def limit_title(title: str) -> str:
    """Return a title of a report without those of its subjects that make it too long."""
    theme, _, rest = title.partition(": ")
    subjects = rest.split("; ")
    most = MAX_WORDS_OF_TITLE - len(theme.split())
    if len(rest.split()) <= most or len(subjects) == 1:
        return title
    while len(subjects) > 1 and len(" ".join(subjects).split()) > most:
        subjects.pop()
    kept = _cut_words("; ".join(subjects), most)
    return f"{theme}: {kept}" if kept.endswith("…") else f"{theme}: {kept}; …"


def _cut_words(text: str, most: int) -> str:
    """Return the first words of a text, and a mark if there are more."""
    words = text.split()
    if len(words) <= most:
        return text
    del words[most:]
    # "The Belgian Antarctic Expedition in the"
    while len(words) > 3 and words[-1].lower() in map_words_to_languages():
        words.pop()
    return f"{' '.join(words).rstrip(',;')} …"


def write_themes(
    question: Question,
    opening: str,
    themes: Sequence[Theme],
    max_words: int,
    rest: str = "",
    filler: Theme | None = None,
    in_order: bool = False,
) -> Answer:
    """Write the themes as a numbered list within a budget of words, with citations.

    With `rest`, the themes without a sentence are listed after this text. The `filler` gets the
    words that the themes leave. With `in_order`, no theme has a sentence if a theme before it has
    none.
    """
    left = max_words - len(opening.split())
    if rest:
        left -= len(rest.split()) + sum(len(theme.short_heading.split()) for theme in themes)
    used: list[frozenset[str]] = []
    most = MAX_SENTENCES_OF_THEME
    left = choose_points(themes, left, used, most, count_names=not rest, in_order=in_order)
    if filler is not None:
        themes = [*themes, filler]
        choose_points([filler], left, used, len(filler.points), count_names=True)
    index = question.index
    units = index.text_units(point.source for theme in themes for point in theme.chosen)
    citations: list[Citation] = []
    lines = [f"{opening}\n"]
    told = [theme for theme in themes if theme.chosen]
    for number, theme in enumerate(told, 1):
        parts = []
        for point in theme.chosen:
            unit = units[point.source]
            candidate = locate_sentence(point.text, unit)
            said = point.text if candidate is None else candidate.text
            if candidate is None:
                # A model wrote this sentence: cite the most similar sentence of the passage.
                best = best_sentence(said, [unit])
                assert best is not None
                candidate = best[0]
            citations.append(cite_passage(len(citations) + 1, candidate, unit))
            shown = replace(point, text=as_one_line(said)).quotation
            parts.append(f"{shown} [{len(citations)}]")
        lines.append(f"{number}. {theme.heading}\n   {' '.join(parts)}\n")
    unsaid = [t.short_heading for t in themes if t is not filler and not t.chosen]
    if rest and unsaid:
        lines.append(f"{rest}: {'; '.join(unsaid)}{'' if unsaid[-1].endswith('…') else '.'}")
    question.counts["reports_used"] = len(told)
    return question.answer("\n".join(lines).rstrip(), citations=tuple(citations))


def choose_points(
    themes: Sequence[Theme],
    left: int,
    used: list[frozenset[str]],
    most: int,
    count_names: bool,
    in_order: bool = False,
) -> int:
    """Choose sentences for the themes in turn; return how many words of the budget are left.

    A theme has twice as many turns as a theme of a sixteenth of its weight.
    `left` is the budget, and `used` has the words of each chosen sentence, which no sentence
    repeats or is a part of. The first sentence of all is chosen even if it is too long. A theme
    gets at most `most` sentences. With `count_names`, the names of the themes are part of the
    budget.
    """
    for theme in themes:
        theme.points.sort(key=lambda point: -value_of(point))
    waiting = list(themes)
    while waiting:
        # No theme has a third sentence while another one waits for its first.
        is_open = any(not theme.chosen for theme in waiting)
        turn = [t for t in waiting if len(t.chosen) < 2] if is_open else waiting
        theme = max(turn, key=lambda t: t.weight**WEIGHT_POWER / (1 + len(t.chosen)))
        heading = 0
        if not theme.chosen:
            heading = 1 + theme.n_words
            heading -= 0 if count_names else len(theme.short_heading.split())
        for point in theme.points:
            words = distinctive_words(point.text)
            n_words = heading + len(point.quotation.split()) + 1
            if (n_words <= left or not used) and not any(
                are_near_duplicates(words, other) or (words and words <= other) for other in used
            ):
                theme.chosen.append(point)
                used.append(words)
                left -= n_words
                if len(theme.chosen) == most:
                    waiting.remove(theme)
                break
        else:
            waiting.remove(theme)
            if in_order and not theme.chosen:
                waiting = [other for other in waiting if other.chosen]
    return left


def value_of(point: Point) -> float:
    """Return the score of a sentence, less a penalty for a long sentence."""
    return point.score - LONG_SENTENCE_PENALTY * max(0, len(point.text.split()) - LONG_SENTENCE)

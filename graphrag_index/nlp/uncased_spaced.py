"""Find names in scripts without capitals that part words by spaces: Arabic, Hebrew, Hindi, Korean.

A name is a run of one to three words that recurs, without the particles that are
written together with it. Frequent nouns are found alike; a model does better.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

MAX_WORDS = 3
# A part recurs hardly more often than the longer run that holds it.
PART_SHARE = 0.8

_STOP_WORDS = {
    "ar": frozenset(
        (
            "في من على إلى عن مع هذا هذه ذلك تلك الذي التي الذين ما لا لم لن قد كان كانت يكون هو "
            "هي هم أن إن أو ثم بعد قبل عند كل بين حتى إذا كما أيضا غير بعض منذ خلال حيث وقد وكان "
            "لكن بل أي نحن أنا أنت كانوا ليس ولم وهو وهي وفي ومن وعلى وإلى اليوم عام سنة كما "
            "عندما لأن فقد تم قال قالت وقال وقالت يقول تقول أكد وأكد ولد زار عاش كتب درس حصل سافر "
            "عاد وعاد أعلن أعلنت وكانت إنه أنه إنها أنها حول ضد نحو لدى فيها فيه منها منه بها به "
            "له لها لهم مدينة شركة الرئيس الوزير السيد السيدة الدكتور الملك الأمير الشيخ"
        ).split()
    ),
    "he": frozenset(
        (
            "של את על עם הוא היא הם זה זו כי לא גם או אבל אם כל היה הייתה היו אל מן בין אשר רק "
            "עוד יש אין מה מי כמו לפני אחרי אחר אמר אמרה"
        ).split()
    ),
    "hi": frozenset(
        (
            "का के की में है हैं और से को पर ने यह वह था थे थी एक भी कि जो तो ही हो या नहीं कर "
            "गया गई गए लिए साथ बाद अपने इस उस उन इन तक हुआ हुई हुए किया कहा रहे रहा रही"
        ).split()
    ),
    "ko": frozenset(
        "그 이 저 수 것 등 및 그리고 하지만 그러나 또한 있다 했다 하는 있는 위해 대한 때 두".split()
    ),
}
# What is written together with the word behind it: conjunctions, then prepositions.
_PREFIXES = {
    "ar": ("و", "ف", "ب", "ل", "ك", "وب", "ول", "وك", "فب", "فل"),
    "he": ("ו", "ב", "ל", "מ", "ה", "ש", "וב", "ול", "ומ", "וה"),
}
_SUFFIXES = {
    "ko": (
        *("에서는", "에서", "으로", "에게", "까지", "부터", "이라는", "라는"),
        *("은", "는", "이", "가", "을", "를", "의", "에", "와", "과", "도", "로"),
    )
}
# Hebrew to Thaana, the scripts of India and of the Caucasus, Ethiopic, Hangul: letters and marks.
_LETTER = (
    r"[\u0590-\u05bd\u05bf-\u05f2\u0610-\u061a\u0620-\u066f\u0671-\u06d3\u06d5-\u06ff"
    r"\u0710-\u07bf\u0900-\u0963\u0966-\u0df3\u10d0-\u10fa\u10fd-\u11ff\u1200-\u135a"
    r"\uac00-\ud7af]"
)
# Joiners of no width stand inside of words.
_WORD = re.compile(rf"{_LETTER}+(?:[\u200c\u200d]+{_LETTER}+)*")


class Word(NamedTuple):
    """A word of a text: its place and spelling, and the same of it without affixes."""

    start: int
    end: int
    text: str
    bare_start: int
    bare_end: int
    bare: str


class SpacedNames:
    """Counts words without their affixes and the runs of words that recur."""

    def __init__(self, texts: Callable[[], Iterable[str]], code: str, min_frequency: int) -> None:
        """Read the texts of one language, which `texts` streams, twice."""
        self._stop = _STOP_WORDS.get(code, frozenset())
        words: Counter[str] = Counter()
        for text in texts():
            words.update(match.group() for match in _WORD.finditer(text))
        self._bare = _bare_words(words, code)
        self._only_first = code in _PREFIXES
        frequency: Counter[str] = Counter()
        for word, times in words.items():
            frequency[word] += times
            bare = self._bare[word][1] if word in self._bare else word
            if bare != word:
                frequency[bare] += times
        self._frequent = {word for word, times in frequency.items() if times >= min_frequency}
        phrases: Counter[str] = Counter()
        for text in texts():
            for clause in self._clauses(text):
                phrases.update(phrase for _, _, phrase in self._phrases(clause))
        self.names = _without_parts({p: n for p, n in phrases.items() if n >= min_frequency})

    def find(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Yield the names in a text, the longest first where they overlap: start, end, name."""
        for clause in self._clauses(text):
            reached = -1
            for start, end, phrase in self._phrases(clause):
                if phrase in self.names and start >= reached:
                    yield start, end, phrase
                    reached = end

    def _clauses(self, text: str) -> Iterator[list[Word]]:
        """Cut a text at whatever is no space into runs of words."""
        clause: list[Word] = []
        reached = 0
        for match in _WORD.finditer(text):
            start, end = match.span()
            if clause and not text[reached:start].isspace():
                yield clause
                clause = []
            reached = end
            word = match.group()
            cut, bare, length = self._bare.get(word, (0, word, len(word)))
            clause.append(Word(start, end, word, start + cut, start + cut + length, bare))
        if clause:
            yield clause

    def _phrases(self, clause: list[Word]) -> Iterator[tuple[int, int, str]]:
        """Yield runs of words that may be names, longer ones first at each place.

        Only the first word loses a prefix, and only the last a suffix: inside of a name
        they belong to it.
        """
        for first, head in enumerate(clause):
            if head.text in self._stop or head.bare in self._stop:
                continue
            opening = head.bare if self._only_first else head.text
            start = head.bare_start if self._only_first else head.start
            for last in range(min(first + MAX_WORDS, len(clause)) - 1, first, -1):
                tail = clause[last]
                closing = tail.text if self._only_first else tail.bare
                words = [opening, *(w.text for w in clause[first + 1 : last]), closing]
                if tail.text in self._stop or closing in self._stop:
                    continue
                if all(word in self._frequent for word in words):
                    end = tail.end if self._only_first else tail.bare_end
                    yield start, end, " ".join(words)
            if len(head.bare) > 1 and head.bare in self._frequent:
                yield head.bare_start, head.bare_end, head.bare


def _bare_words(words: Counter[str], code: str) -> dict[str, tuple[int, str, int]]:
    """Map words to what they are without an affix: characters cut, bare word, its length in them.

    An affix is taken off if the corpus has the rest by itself or with another affix.
    """
    candidates = {word: list(_candidates(word, code)) for word in words}
    forms: dict[str, set[str]] = defaultdict(set)
    for word, options in candidates.items():
        forms[word].add(word)
        for _, bare, _ in options:
            forms[bare].add(word)
    bare_words = {}
    for word, options in candidates.items():
        # What the corpus writes by itself is more likely a word than what it never does.
        for option in sorted(options, key=lambda option: option[1] not in words):
            others = forms[option[1]] - {word}
            # Kamal is not "like money", even if money comes up once.
            likely = code not in _PREFIXES or option[1].startswith("ال")
            if others and (likely or sum(words[other] for other in others) >= words[word]):
                bare_words[word] = option
                break
    return bare_words


def _candidates(word: str, code: str) -> Iterator[tuple[int, str, int]]:
    """Yield what a word may be without an affix, the longest affix first."""
    if code == "ar":
        for prefix in ("ولل", "لل"):
            # The article loses its first letter behind this preposition.
            if word.startswith(prefix) and len(word) - len(prefix) > 1:
                yield 0, "ال" + word[len(prefix) :], len(word)
    for prefix in sorted(_PREFIXES.get(code, ()), key=len, reverse=True):
        length = len(word) - len(prefix)
        if word.startswith(prefix) and length > 1:
            yield len(prefix), word[len(prefix) :], length
    for suffix in _SUFFIXES.get(code, ()):
        length = len(word) - len(suffix)
        if word.endswith(suffix) and length > 1:
            yield 0, word[:length], length


def _without_parts(counts: dict[str, int]) -> set[str]:
    """Leave out what recurs hardly more often than something longer that holds it."""
    kept = set(counts)
    for longer, times in counts.items():
        words = longer.split(" ")
        for start in range(len(words)):
            for end in range(start + 1, len(words) + 1):
                part = " ".join(words[start:end])
                if part != longer and part in kept and times >= PART_SHARE * counts[part]:
                    kept.discard(part)
    return kept

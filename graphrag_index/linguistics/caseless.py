"""The fallback for scripts that do not mark names: what recurs is taken for a name.

Where words are separated (Arabic, Hebrew, Hindi, Korean), runs of one to three
words that recur; where they are not (Chinese, Japanese, Thai), strings of two to
eight characters that recur in changing company. Both leave out what begins or
ends with a function word, and the parts of longer strings that recur as often.
It finds names and frequent nouns alike; a model does better.
"""

import re
from collections import Counter, defaultdict

# Characters at which a Chinese or Japanese name neither begins nor ends.
_UNSPACED_STOP = frozenset(
    "的了在是和与及或对为把被从到向以于由比跟给让使就都也还又再不没有无这那哪其之而则且但如若因所将会能可"
    "要想应该很太最更已曾正着过吗呢吧啊呀我你他她它们谁什么怎样个些每各某几多少一二三四五六七八九十百千万年"
    "月日时分后前里外间来去说道看见做"
    "のをにはがでともへやかねよわばらりるれたてだしまさいくけなれしもある"
)
_SPACED_STOP = {
    "ar": frozenset(
        (
            "في من على إلى عن مع هذا هذه ذلك تلك الذي التي الذين ما لا لم لن قد كان كانت يكون هو "
            "هي هم أن إن أو ثم بعد قبل عند كل بين حتى إذا كما أيضا غير بعض منذ خلال حيث وقد وكان "
            "لكن بل أي نحن أنا أنت كانوا ليس ولم وهو وهي وفي ومن وعلى وإلى اليوم عام سنة كما "
            "عندما لأن فقد تم"
        ).split()
    ),
    "he": frozenset(
        (
            "של את על עם הוא היא הם זה זו כי לא גם או אבל אם כל היה הייתה היו אל מן בין אשר רק "
            "עוד יש אין מה מי כמו לפני אחרי אחר"
        ).split()
    ),
    "hi": frozenset(
        (
            "का के की में है हैं और से को पर ने यह वह था थे थी एक भी कि जो तो ही हो या नहीं कर "
            "गया गई लिए साथ बाद अपने इस उस उन इन तक"
        ).split()
    ),
    "ko": frozenset(
        "그 이 저 수 것 등 및 그리고 하지만 그러나 또한 있다 했다 하는 있는 위해 대한 때".split()
    ),
}
# What is written together with a word but does not belong to a name.
_PREFIXES = {
    "ar": ("وال", "بال", "لل", "و", "ف", "ب", "ل", "ك"),
    "he": ("ו", "ב", "ל", "מ", "ה", "ש"),
}
_SUFFIXES = {
    "ko": (
        *(
            "에서는",
            "에서",
            "으로",
            "에게",
            "까지",
            "부터",
            "은",
            "는",
            "이",
            "가",
            "을",
            "를",
            "의",
            "에",
        ),
        *("와", "과", "도", "로"),
    )
}
_UNSPACED_RUN = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\u0e00-\u0e7f々ー]+")
_SPACED_WORD = re.compile(
    r"[\u0590-\u05ff\u0600-\u06ff\u0750-\u077f\u0900-\u0dff\u1100-\u11ff\uac00-\ud7af]+"
)
_STOPS = re.compile(r"[،؛؟۔.!?;:,。，、；：！？\n()（）「」『』“”]")
MAX_CHARACTERS = 8
MAX_WORDS = 3

CODES = frozenset(("zh", "ja", "th", "ar", "he", "hi", "ko"))
_UNSPACED = frozenset(("zh", "ja", "th"))


class CaselessNames:
    """Counts what recurs in all documents, then finds it in each."""

    def __init__(self, min_frequency: int) -> None:
        self.min_frequency = min_frequency
        self.counts: Counter[str] = Counter()
        self.left: dict[str, set[str]] = defaultdict(set)
        self.right: dict[str, set[str]] = defaultdict(set)
        self.words: Counter[tuple[str, str]] = Counter()
        self.phrases: Counter[str] = Counter()

    def add(self, text: str, code: str) -> None:
        """Count the strings or words of one document."""
        if code in _UNSPACED:
            self._count_strings(text)
        else:
            for clause in _clauses(text):
                self.words.update((code, word) for _, word in clause)

    def count_phrases(self, text: str, code: str) -> None:
        """Count runs of words, with their affixes off; after all documents are added."""
        if code not in _UNSPACED:
            for clause in _clauses(text):
                self.phrases.update(phrase for _, _, phrase in self._phrases(clause, code))

    def _count_strings(self, text: str) -> None:
        for run in _UNSPACED_RUN.findall(text):
            padded = f" {run} "
            for start in range(1, len(run) + 1):
                if padded[start] in _UNSPACED_STOP:
                    continue
                for end in range(start + 2, min(start + MAX_CHARACTERS, len(run)) + 2):
                    if end > len(run) + 1:
                        break
                    if padded[end - 1] in _UNSPACED_STOP:
                        continue
                    string = padded[start:end]
                    self.counts[string] += 1
                    self.left[string].add(padded[start - 1])
                    self.right[string].add(padded[end])

    def names(self) -> set[str]:
        """Return the strings and phrases that recur often enough, without parts of longer ones."""
        frequent = {s: n for s, n in self.counts.items() if n >= self.min_frequency}
        # A name stands in changing company; a piece of one always has the same neighbour.
        free = {
            s: n
            for s, n in frequent.items()
            if (len(self.left[s]) > 1 or " " in self.left[s])
            and (len(self.right[s]) > 1 or " " in self.right[s])
        }
        phrases = {p: n for p, n in self.phrases.items() if n >= self.min_frequency}
        return _without_parts(free, "") | _without_parts(phrases, " ")

    def find(self, text: str, code: str, names: set[str]) -> list[tuple[int, int, str]]:
        """Find the names in one text, the longest first where they overlap: start, end, name."""
        found = []
        if code in _UNSPACED:
            for match in _UNSPACED_RUN.finditer(text):
                run, offset, start = match.group(), match.start(), 0
                while start < len(run):
                    for length in range(min(MAX_CHARACTERS, len(run) - start), 1, -1):
                        if run[start : start + length] in names:
                            end = offset + start + length
                            found.append((offset + start, end, run[start : start + length]))
                            start += length
                            break
                    else:
                        start += 1
            return found
        for clause in _clauses(text):
            reached = -1
            for start, end, phrase in self._phrases(clause, code):
                if phrase in names and start >= reached:
                    found.append((start, end, phrase))
                    reached = end
        return found

    def _phrases(self, clause: list[tuple[int, str]], code: str) -> list[tuple[int, int, str]]:
        """Return runs of words, longer ones first at each place: start, end, words."""
        stop = _SPACED_STOP.get(code, frozenset())
        bare = [(start, *self._bare(word, code)) for start, word in clause]
        phrases = []
        for first in range(len(bare)):
            for last in range(min(first + MAX_WORDS, len(bare)), first, -1):
                words = [word for _, _, word in bare[first:last]]
                if words[0] in stop or words[-1] in stop or clause[first][1] in stop:
                    continue
                # Only the first word may lose a prefix: inside of a name it belongs to it.
                words = [words[0], *(clause[i][1] for i in range(first + 1, last))]
                if code in _SUFFIXES:
                    words[-1] = bare[last - 1][2]
                if len(words) == 1 and len(words[0]) < 2:
                    continue
                start = bare[first][0] + bare[first][1]
                end = clause[last - 1][0] + len(clause[last - 1][1])
                if code in _SUFFIXES:
                    end = bare[last - 1][0] + len(bare[last - 1][2])
                phrases.append((start, end, " ".join(words)))
        return phrases

    def _bare(self, word: str, code: str) -> tuple[int, str]:
        """Take off an affix if the word without it is in the corpus too; how many characters."""
        for prefix in _PREFIXES.get(code, ()):
            rest = word[len(prefix) :]
            if word.startswith(prefix) and len(rest) > 1 and (code, rest) in self.words:
                return len(prefix), rest
        for suffix in _SUFFIXES.get(code, ()):
            rest = word[: len(word) - len(suffix)]
            if word.endswith(suffix) and len(rest) > 1:
                return 0, rest
        return 0, word


def _clauses(text: str) -> list[list[tuple[int, str]]]:
    """Cut a text at punctuation into runs of words with their offsets."""
    clauses: list[list[tuple[int, str]]] = [[]]
    reached = 0
    for match in _SPACED_WORD.finditer(text):
        if _STOPS.search(text, reached, match.start()):
            clauses.append([])
        clauses[-1].append((match.start(), match.group()))
        reached = match.end()
    return clauses


def _without_parts(counts: dict[str, int], separator: str) -> set[str]:
    """Leave out what recurs hardly more often than something longer that holds it."""
    kept = set(counts)
    for longer, times in counts.items():
        pieces = longer.split(" ") if separator else list(longer)
        for start in range(len(pieces)):
            for end in range(start + 1, len(pieces) + 1):
                part = separator.join(pieces[start:end])
                if part != longer and part in kept and times * 10 >= counts[part] * 7:
                    kept.discard(part)
    return kept

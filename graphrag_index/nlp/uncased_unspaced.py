"""Find names in scripts without capitals that do not part words: Chinese, Japanese, Thai.

A name is a string of two characters or more that recurs in changing company, as
whole words do [1]_. Frequent nouns are found alike; a model does better.

References
----------
.. [1] Feng, Chen, Deng & Zheng, Accessor Variety Criteria for Chinese Word
   Extraction, Computational Linguistics 30 (2004).
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator

# Longest names in characters; alphabets need more of them than Chinese does.
MAX_CHARACTERS = 20
_MAX_CHARACTERS = {"zh": 10, "ja": 12}
# Part of a word, as 鲁 of 鲁迅, recurs nearly as often as the word does.
PART_SHARE = 0.8
# A character of weak meaning at the edge of a name stands there for so large a share of its uses.
EDGE_SHARE = 0.6

# Characters at which hardly any name begins or ends, and words that part others.
_HARD_EDGES = frozenset(
    "的了在是和与及或把被从到向着过吗呢吧啊呀我你他她它们这哪谁什怎與從於這過嗎們麼"
    "ぁあぃいぅうぇえぉおかがきぎくぐけげこごさざしじすずせぜそぞただちぢっつづてでとど"
    "なにぬねのはばぱひびぴふぶぷへべぺほぼぽまみむめもゃやゅゆょよらりるれろわゐゑをん·・"
)
# Characters that often stand beside names, but are part of some: 华为, 成都, 日本, 三星.
_SOFT_EDGES = frozenset(
    "对为以由于比让给使就都也还又再不没有无那其之而则且但如若因所将会能可要想应该很太最更已曾正"
    "个些每各某几多少一二三四五六七八九十百千万年月日时分后前里外间来去说道看见做"
    "為對無說來時會後間裡個幾萬"
)
# Words that end the name before them, but not behind these: "this gentleman".
_ENDINGS = ("公司", "集团", "集團", "先生", "女士", "小姐", "夫人")
_NO_NAME = frozenset("的了是在和与與或位个個名家间間本该該此贵貴这這那哪各某两兩几幾新老大小")
_BREAKS = re.compile(
    rf"({'|'.join(_ENDINGS)})|"
    "表示|认为|宣布|指出|出生|因为|所以|但是|可以|没有|已经|开始|以及|其中|我们|他们|她们|自己|这个|"
    "一个|进行|通过|成为|之后|以后|之前|以前|当时|后来|去世|访问|总统|"
    "である|であった|という|から|まで|として|によって|において|について|です|ます|でした|ました"
)
# Kana, Chinese characters, Thai, Lao, Burmese, Khmer.
_LETTER = (
    r"[\u3041-\u30fa\u30fc-\u30ff\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0002fa1f\u0e01-\u0e4e"
    r"\u0e80-\u0ece\u1000-\u1049\u1780-\u17d3々]"
)
# A dot stands between the parts of a foreign name: 阿尔伯特·爱因斯坦.
_RUN = re.compile(rf"{_LETTER}(?:[·・]?{_LETTER})*")
# Signs of length, repetition and (in Thai) vowels and tones: no name begins with one.
_MARKS = frozenset(
    ("ー", "々", *map(chr, (0x0E31, *range(0x0E34, 0x0E3B), *range(0x0E47, 0x0E4F))))
)


def unspaced_names(texts: Callable[[], Iterable[str]], code: str, min_frequency: int) -> set[str]:
    """Return the strings that recur as names do.

    `texts` streams the documents: they are read once for each length of string, so that
    only strings whose parts are frequent need to be counted.
    """
    max_characters = _MAX_CHARACTERS.get(code, MAX_CHARACTERS)
    frequent = _frequent_strings(texts, max_characters, min_frequency)
    edges: Counter[str] = Counter()
    left: dict[str, set[str]] = defaultdict(set)
    right: dict[str, set[str]] = defaultdict(set)
    for text in texts() if frequent else ():
        for run in _runs(text):
            edges.update(run)
            padded = f" {run} "
            for start, end in _strings(run, frequent):
                string = run[start:end]
                # Two are enough to know that they change.
                if len(left[string]) < 2:
                    left[string].add(_neighbour(padded[start]))
                if len(right[string]) < 2:
                    right[string].add(_neighbour(padded[end + 1]))
    free = {
        string: times
        for string, times in frequent.items()
        if _changes(left[string])
        and _changes(right[string])
        and _is_edge(string[0], times, edges)
        and _is_edge(string[-1], times, edges)
        and string[0] not in _MARKS
        and not string.startswith(_ENDINGS)
    }
    return _without_parts(free)


def find_unspaced(text: str, names: Collection[str]) -> Iterator[tuple[int, int, str]]:
    """Yield the names in a text, the longest first where they overlap: start, end, name."""
    longest = max(map(len, names), default=0)
    for match in _RUN.finditer(text):
        run, offset, start = match.group(), match.start(), 0
        while start < len(run):
            for end in range(min(start + longest, len(run)), start + 1, -1):
                if run[start:end] in names:
                    yield offset + start, offset + end, run[start:end]
                    start = end
                    break
            else:
                start += 1


def _runs(text: str) -> Iterator[str]:
    for run in _RUN.findall(text):
        # Every second part is an ending, or None for another break.
        parts = [*_BREAKS.split(run), None]
        for piece, ending in zip(parts[::2], parts[1::2], strict=True):
            if piece:
                yield piece + ending if ending and piece[-1] not in _NO_NAME else piece


def _frequent_strings(
    texts: Callable[[], Iterable[str]], max_characters: int, min_frequency: int
) -> dict[str, int]:
    """Count strings level by level: a string is frequent only if both its parts are."""
    frequent: dict[str, int] = {}
    shorter: set[str] | None = None
    for length in range(2, max_characters + 1):
        counts: Counter[str] = Counter()
        for text in texts():
            for run in _runs(text):
                strings = (run[at : at + length] for at in range(len(run) - length + 1))
                if shorter is None:
                    counts.update(strings)
                else:
                    counts.update(s for s in strings if s[1:] in shorter and s[:-1] in shorter)
        level = {string: times for string, times in counts.items() if times >= min_frequency}
        if not level:
            break
        frequent |= level
        shorter = level.keys() | set()
    return frequent


def _strings(run: str, frequent: dict[str, int]) -> Iterator[tuple[int, int]]:
    """Yield where frequent strings lie in a run."""
    for start in range(len(run) - 1):
        for end in range(start + 2, min(start + MAX_CHARACTERS, len(run)) + 1):
            if run[start:end] not in frequent:
                # Nor is any longer string that begins with it.
                break
            yield start, end


def _neighbour(character: str) -> str:
    """Return a space for what parts words: the edge of a run, or a word of weak meaning."""
    return " " if character in _HARD_EDGES or character in _SOFT_EDGES else character


def _changes(neighbours: set[str]) -> bool:
    return len(neighbours) > 1 or " " in neighbours


def _is_edge(character: str, times: int, counts: Counter[str]) -> bool:
    if character in _HARD_EDGES:
        return False
    return character not in _SOFT_EDGES or times >= EDGE_SHARE * counts[character]


def _without_parts(counts: dict[str, int]) -> set[str]:
    """Leave out what recurs hardly more often than something longer that holds it."""
    kept = set(counts)
    for longer, times in counts.items():
        for start in range(len(longer)):
            for end in range(start + 2, len(longer) + 1):
                part = longer[start:end]
                if part != longer and part in kept and times >= PART_SHARE * counts[part]:
                    kept.discard(part)
    return kept

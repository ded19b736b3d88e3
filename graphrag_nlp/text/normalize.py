"""Text normalization: case, accents, width, words, scripts without spaces, and stems.

All code that compares texts or names uses a function of this module. In this table, "yes" means
that the result still has the property of the text.

=================== ==== ======= ===== =========== ==============================================
function            case accents width punctuation for
=================== ==== ======= ===== =========== ==============================================
`fold`              no   no      no    one space   words of names that are compared or inflected
`fold_name`         no   no      no    one space   names in search tables and questions; drops 's
`letters`           no   no      no    none        texts that models copy with other punctuation
`letters_accented`  no   yes     no    none        two names that differ in accents alone
`title_key`         no   yes     no    yes         key of an entity: equal keys are one entity
`fold_in_place`     no   yes     yes   yes         spans: the result is as long as the text
`stem_word`         –    –       –     –           one English word in lower case
=================== ==== ======= ===== =========== ==============================================

All of them but the last two remove characters that are not shown, such as the soft hyphen. `fold`
works in this order. Compatibility characters become plain characters (ﬁ, Ａ, ①), and letters become
lower case. Accents of Latin, Greek, Cyrillic, Hebrew and Arabic are removed. Letters with a stroke
and ligatures are replaced (ł, ø, ß). Words consist of letters, digits, and the combining marks of
all other scripts; all other characters separate words.
"""

import fnmatch
import re
import threading
from collections.abc import Callable, Mapping
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final
from unicodedata import category, combining, east_asian_width, normalize

import yaml

if TYPE_CHECKING:
    import polars as pl

# Character classes and replacements of letters; comments in the YAML file explain them.
_LETTERS = yaml.load(
    Path(__file__).with_name("data").joinpath("letters.yaml").read_text(encoding="utf-8"),
    yaml.CSafeLoader,
)
UNSPACED = f"[{_LETTERS['unspaced']}]"
UNSPACED_OR_HANGUL = f"[{_LETTERS['unspaced']}{_LETTERS['hangul']}]"
# Accents, and characters that are not shown.
_ACCENT_CLASS = f"[{_LETTERS['accents']}{_LETTERS['invisible']}]"
_PLAIN_LETTERS: dict[str, str] = _LETTERS["plain_letters"]
# Pattern (for polars) that matches a word of a name or question with its possessive 's.
WORD = r"[\p{L}\p{N}][\p{L}\p{M}\p{N}]*(?:['’]s\b)?"

_match_accent = re.compile(_ACCENT_CLASS).match
_search_unspaced = re.compile(UNSPACED).search
_split_unspaced = partial(re.compile(f"{UNSPACED}{{1,2}}").sub, r" \g<0> ")
_remove_invisible = partial(re.compile(f"[{_LETTERS['invisible']}]").sub, "")
_join_unspaced = partial(re.compile(rf"(?<={UNSPACED_OR_HANGUL}) (?={UNSPACED_OR_HANGUL})").sub, "")
# Characters that format a text, and those beside which they have no sense of their own: Latin,
# Greek, Cyrillic, Han, kana and Hangul, but no script that joins letters or is written right to
# left, and no symbol. A soft hyphen before the end of a line tells that a word goes on.
_FORMATTING = "\xad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff" + "".join(
    map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A)))
)
_PLAIN_CLASS = r"[\x00-\u058f\u1e00-\u206f\u2e80-\ua4cf\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef]"
_REMOVED_FORMATTING = re.compile(
    rf"\xad(?!\s*\n)|(?<={_PLAIN_CLASS})[{_FORMATTING[1:]}]+(?={_PLAIN_CLASS})"
)
# A pair of surrogates, a lone surrogate, or another escape in a JSON string.
_ESCAPE = re.compile(
    r"\\u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|\\u[dD][89a-fA-F][\da-fA-F]{2}|\\."
)
_SURROGATE = re.compile("[\ud800-\udfff]")
_ASCII_WORD = re.compile("[a-z0-9]+")
# The possessive 's in a text of which only letters, digits, "'" and spaces are left.
_POSSESSIVE = re.compile(r"'s(?![^\s'])")
# Maximum width of a title in terminal columns, so that text after the title fits the line.
MAX_TITLE_COLUMNS = 60
# White space characters that a model or an editor may replace by a space.
_SPACE_REPLACEMENTS = str.maketrans("\t\n\v\f\r\x85\xa0\u2028\u2029\u202f", " " * 10)
# In the lists, "_" means up to six words between two words.
_GAP: Final = r"\s((?:\w+\s){0,6}?)"


class _FoldTable(dict[int, str]):
    """Cache of each character without case and accents, by code point.

    Characters that separate words become " ", and apostrophes become "'".
    """

    def __missing__(self, code: int) -> str:
        folded = ""
        for character in normalize("NFKD", chr(code)).lower():
            if character in "'’":
                folded += "'"
            elif not _match_accent(character):
                is_of_word = category(character)[0] in "LNM"
                folded += _PLAIN_LETTERS.get(character, character if is_of_word else " ")
        self[code] = folded = normalize("NFC", folded)
        return folded


_FOLD_TABLE = _FoldTable()


@lru_cache(maxsize=65_536)
def fold(text: str) -> str:
    """Remove case, accents and width; replace all but letters and digits by single spaces."""
    if text.isascii():
        return " ".join(_ASCII_WORD.findall(text.lower()))
    return " ".join(normalize("NFC", text.translate(_FOLD_TABLE)).replace("'", " ").split())


def fold_name(name: str) -> str:
    """Normalize a name as in the search tables: `fold` the name without the possessive 's."""
    folded = normalize("NFC", name.translate(_FOLD_TABLE))
    return " ".join(_POSSESSIVE.sub("", folded).replace("'", " ").split())


def fold_names(names: "pl.Expr") -> "pl.Expr":
    """Apply `fold_name` to a column of names."""
    return (
        names.str.normalize("NFKD")
        .str.to_lowercase()
        .str.replace_all(_ACCENT_CLASS, "")
        .str.replace_many(list(_PLAIN_LETTERS), list(_PLAIN_LETTERS.values()))
        .str.normalize("NFC")
        .str.replace_all(r"['’]s\b", "")
        .str.replace_all(r"[^\p{L}\p{M}\p{N}]+", " ")
        .str.strip_chars(" ")
    )


def letters(text: str) -> str:
    """Return the letters and digits of a text without case, accents and width."""
    return fold(text).replace(" ", "")


@cache
def _fold_character(character: str) -> str:
    """Return the normalized letters and digits of a character: several for ß and ﬁ."""
    return _FOLD_TABLE[ord(character)].strip("' ")


def letters_with_offsets(text: str) -> tuple[str, list[int]]:
    """Return the result of `letters`, and the offset in the text of each letter."""
    parts = list(map(_fold_character, text))
    return "".join(parts), [offset for offset, part in enumerate(parts) for _ in part]


def letters_accented(text: str) -> str:
    """Return the letters and digits of a text without case and width, but with accents."""
    return "".join(filter(str.isalnum, title_key(text)))


@lru_cache(maxsize=65_536)
def title_key(title: str) -> str:
    """Normalize case, width and white space of a title. Equal keys mean the same entity.

    Spaces count only in scripts whose words they separate: not in Korean, 김 민수 and 김민수.
    """
    key = " ".join(normalize("NFKC", normalize("NFKC", title).casefold()).split())
    return key if key.isascii() else _join_unspaced(_remove_invisible(key))


def fold_in_place(text: str) -> str:
    """Normalize case and white space of a text without changing its length."""
    folded = text.lower()
    if len(folded) != len(text):
        # Keep the few letters whose lower case has two characters.
        folded = "".join(low if len(low := c.lower()) == 1 else c for c in text)
    return folded.translate(_SPACE_REPLACEMENTS)


def replace_surrogates(text: str) -> str:
    """Replace each surrogate, which UTF-8 cannot encode, by U+FFFD."""
    return _SURROGATE.sub("\ufffd", text)


def join_surrogates(text: str) -> str:
    """Join the two halves of a character, and replace each lone surrogate by U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def count_words(text: str) -> int:
    """Count the words of a text: in scripts without spaces, two characters are one."""
    return len(text.split() if text.isascii() else _split_unspaced(text).split())


def remove_formatting(text: str, substitute: Callable[..., str] = re.Pattern.sub) -> str:
    """Remove the characters that only format a text, and would cut a name: the soft hyphen.

    `substitute` is called like `re.Pattern.sub`; another one can note what was removed.
    """
    has_some = not text.isascii() and any(character in text for character in _FORMATTING)
    return substitute(_REMOVED_FORMATTING, "", text) if has_some else text


def replace_escaped_surrogates(text: str) -> str:
    """Replace each escape of a lone surrogate in JSON by the escape of U+FFFD."""
    if "\\ud" not in text and "\\uD" not in text:
        return text
    return _ESCAPE.sub(lambda found: "\\ufffd" if len(found[0]) == 6 else found[0], text)


def is_unspaced(text: str) -> bool:
    """Return whether a text has characters of a script without spaces between words."""
    return _search_unspaced(text) is not None


_of_thread = threading.local()


@lru_cache(maxsize=65_536)
def stem_word(word: str) -> str:
    """Return the English Snowball stem of a word in lower case, as in full-text search."""
    # A stemmer keeps the word that it works on: threads must not share one.
    if not hasattr(_of_thread, "stem"):
        import snowballstemmer

        _of_thread.stem = snowballstemmer.stemmer("english").stemWord
    stem: str = _of_thread.stem(word)
    return stem


def phonetic_keys(words: "pl.Expr") -> "pl.Expr":
    """Return a phonetic key for each Latin word of a column; "" for short or other words.

    `words` have been normalized by `fold`. The key has the consonants of the word: similar
    consonants are equal, repeated ones occur once, and a vowel at the start is "A".
    """
    import polars as pl

    plain = words
    for written, as_one in _LETTERS["similar_consonants"].items():
        plain = plain.str.replace_all(written, as_one)
    plain = plain.str.replace(r"^[aeiouyhj]+", "A").str.replace_all(r"[aeiouyhj]+", "")
    for letter in "bfgklmnprst":
        plain = plain.str.replace_all(f"{letter}{letter}+", letter)
    is_latin_word = words.str.contains(r"^[a-z]{4,}$") & (plain.str.len_bytes() > 1)
    return pl.when(is_latin_word).then(plain).otherwise(pl.lit(""))


def phonetic_key(word: str) -> str:
    """Return the phonetic key of one word that `fold` has normalized."""
    import polars as pl

    return str(pl.select(phonetic_keys(pl.lit(word))).item())


@cache
def translate_glob(pattern: str) -> re.Pattern[str]:
    """Translate a glob pattern of paths, relative to the input folder, to a regular expression.

    ``*``, ``?``, ``[abc]``, ``[a-c]`` and ``[!abc]`` match characters of one name; ``**`` matches
    any number of folders. A pattern that ends with / matches everything in that folder.
    """
    wildcards = {"**/": "(?:[^/]+/)*", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    # Treat a bracket as an ordinary character if no closing bracket precedes the next slash.
    parts = re.split(
        r"(\*\*/|\*\*|\*|\?|\[!?[^/][^]/]*\])", pattern.replace("\\", "/").removeprefix("./")
    )
    # `fnmatch` translates brackets and appends an end of text: remove it. Exclude the slash.
    expression = "".join(
        wildcards.get(part)
        or ("(?!/)" + fnmatch.translate(part).removesuffix(r"\Z") if i % 2 else re.escape(part))
        for i, part in enumerate(parts)
    )
    return re.compile(expression + (".*" if pattern.endswith("/") else ""), re.DOTALL)


def fit_line(text: str, max_width: int = MAX_TITLE_COLUMNS) -> str:
    """Shorten a text to one terminal line of at most `max_width` columns.

    Characters that move the cursor or change the writing direction become spaces.
    """
    printable = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    if display_width(printable) <= max_width:
        return printable
    cut = printable[: max_width - 1]
    while display_width(cut) >= max_width:
        cut = cut[:-1]
    return f"{cut}…"


def display_width(text: str) -> int:
    """Count the terminal columns of a text: two for wide letters, none for accents."""
    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def fold_question(question: str) -> str:
    """Fold the words of a question and remove its punctuation."""
    return " ".join(re.sub(r"['’¿¡?!.,;:-]", " ", _fold_words(question)).split())


def _fold_words(text: str) -> str:
    """Fold each word of a text and keep the other characters."""
    return re.sub(r"(?:[^\W_]|[\u0300-\u036f])+", lambda word: fold(word.group()), text)


def compile_lists(lists: Mapping[str, str]) -> dict[str, re.Pattern[str]]:
    """Compile lists of phrases by their names."""
    return {name: compile_phrases(phrases) for name, phrases in lists.items()}


def compile_phrases(phrases: str) -> re.Pattern[str]:
    """Compile phrases, separated by "|", into a pattern for folded questions."""
    parts = []
    for phrase in (part.strip() for part in phrases.split("|")):
        start = "^" if phrase.startswith("^") else ""
        plain = _fold_words(phrase.removeprefix("^"))
        pattern = re.escape(plain).replace(r"\ _\ ", _GAP)
        pattern = pattern.replace(r"\*", r"\w*").replace(r"\ ", r"\s+")
        bound = "" if is_unspaced(phrase) else r"\b"
        end = "" if plain.endswith(("*", '"', "“")) or not bound else r"\b"
        parts.append(f"{start}{bound}{pattern}{end}")
    return re.compile("|".join(parts))

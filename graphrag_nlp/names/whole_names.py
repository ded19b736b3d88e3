"""Names that are found as a whole, since they have words in lower case.

A paragraph may define its first name ("Life of Crime is a 2013 film"). Such a name may contain
function words, and begin with any word, as no other name may. The noun after the verb shows that
it is a work, an organization or a place. Names of persons are left to the other rules, which cut
roles from them: "Apple manager Tim Cook is a director".

Others are known by their words: laws, courts, products, German organizations, Arabic names.
"""

import re
from collections.abc import Iterator
from functools import cache

from graphrag_nlp.names.compounds import PLACE_END, is_certain_noun
from graphrag_nlp.names.name_words import common_words, is_organization_word, is_wrapped_line
from graphrag_nlp.names.word_table import FINAL_PUNCTUATION, cue_type
from graphrag_nlp.text.languages import ABBREVIATED_TITLES, Language, read_lists, word_set
from graphrag_nlp.text.places import large_place_names
from graphrag_nlp.text.type_words import TYPE_WORDS

_WORDS = read_lists("graphrag_nlp/names/data/words")
_SPANISH_COURT = re.compile(_WORDS["spanish_court"])
# Ends of German names. They are searched first, then the word before them: this is faster.
_GERMAN_TAILS = [re.compile(tail) for tail in _WORDS["german_tails"]]
_GERMAN_RIVER = re.compile(rf" (?:{_WORDS['german_rivers']})\b")
# Names of products that begin in lower case (iPhone), from their first capital on. A search for the
# capital is faster; the letters before it are added later.
_LOWER_PRODUCT = re.compile(
    r"(?:P(?<=\biP)(?:hone|ad|od)(?:OS|s)?(?: \d{1,2}\b(?!,\d)(?: Pro| Plus| Max| Mini)*)?"
    r"|O(?:(?<=\biO)|(?<=\bmacO)|(?<=\btvO)|(?<=\bwatchO))S|C(?<=\biC)loud)\b"
)
# An Arabic name with its article: al-Shabaab.
_ARABIC = re.compile(r"al-(?<![\w@./-]al-)[A-Z]\w+(?:['’](?!s\b)\w+|-[a-z]{2}-[A-Z]\w+)*")
_NAME_BEFORE = re.compile(r"(?:[A-Z][\w'’.-]*(?: (?:of|de|von))?|\b(?:bin|ibn|abu)) $")
_LOWER_START = re.compile(r"[a-z]+$")
_FRENCH_BODIES = re.compile(_WORDS["french_bodies"])
_NO_HEADS = frozenset(_WORDS["german_no_heads"].split())
_HEAD_BEFORE = re.compile(r"(?<![\w-])[A-ZÄÖÜ][\w-]*$")
MAX_HEAD_CHARS = 40
MAX_DEFINED_WORDS = 12
# Maximum number of words from the verb to the noun: "is a 1951 American musical fantasy film".
MAX_WORDS_TO_NOUN = 10
# Maximum number of characters of a paragraph that are read.
MAX_DEFINITION_CHARS = 500
MAX_SHORT_WORD_CHARS = 3
_CONJUNCTIONS = word_set(read_lists("graphrag_nlp/text/data/phrase_words")["conjunctions"])
# Function words before the noun: "is the second largest city", "was her first novel".
_ORDINALS = word_set(read_lists("graphrag_nlp/names/data/words")["ordinals"])
_LINE_START = re.compile(r"\n\s*")
_ELIDED_ARTICLE = re.compile(r"[Ll]['’](?=\w)")
_DASHES = frozenset("-–—/")
_YEAR = re.compile(r"\b[12]\d{3}\b")
# Quotation marks, and the marks of Markdown for italics and bold type.
_QUOTES = "[\"“”„«»‹›‘’'`*_]{1,3}"
_TITLES = "|".join(title.title() for title in sorted(ABBREVIATED_TITLES))
_WORD = rf"(?:(?:{_TITLES})\.|[^\W\d_]\.(?: ?[^\W\d_]\.)*|\w(?:[\w'’&/+.-]*[\w+])?)"
_BRACKETS = r"(?: ?\((?:[^()]|\([^()]*\)){0,200}\))"
_COMMAS = r"(?:, [^.;:\n]{1,100}?,)"


@cache
def _definition_pattern(language: Language) -> re.Pattern[str]:
    copulas = "|".join(sorted(language.copulas))
    return re.compile(
        rf"(?P<open>{_QUOTES})? ?(?=[^\W_a-z])"
        rf"(?P<name>{_WORD}(?:[:,]? {_WORD}){{0,{MAX_DEFINED_WORDS - 1}}}?)"
        rf"[!?]?(?: ?(?P<close>{_QUOTES}))?"
        rf"(?P<between>{_BRACKETS}{{0,2}}{_COMMAS}?{_BRACKETS}?)"
        # The space after a quotation mark may be missing: ``After the Gold Rush ''is a song.
        rf"(?: {{1,2}}|(?<=['’]))(?:{copulas}) (?P<rest>[^\n]+)"
    )


def find_defined_names(text: str, language: Language) -> Iterator[tuple[int, int]]:
    """Yield the spans of the names that paragraphs define, without articles before the names."""
    if not language.copulas:
        return
    pattern = _definition_pattern(language)
    # With a line break before the text, every line follows a line break.
    for line in _LINE_START.finditer(f"\n{text}"):
        before, start = line.start() - 1, line.end() - 1
        if before >= 0 and is_wrapped_line(text, before):
            continue
        found = pattern.match(text, start, start + MAX_DEFINITION_CHARS)
        if found and (length := _find_name_length(found, language)):
            yield found.end("name") - length, found.end("name")


def _find_name_length(found: re.Match[str], language: Language) -> int:
    """Return the number of characters of the defined name at the end of its group; 0 if none."""
    name = found["name"]
    if language.code in ("fr", "it") and (elided := _ELIDED_ARTICLE.match(name)):
        name = name[elided.end() :]
    words = name.split(" ")
    articles = language.articles or language.determiners
    # In "Le grand Soir", the article is a part of the title.
    has_article = len(words) > 1 and words[0].lower() in articles and _is_capitalized(words[1])
    words = words[has_article:]
    begins_with_function_word = words[0].lower() in language.function_words
    is_alone = len(words) == 1
    if not _is_capitalized(words[0]) or (is_alone and begins_with_function_word):
        return 0
    kind = _find_kind(found["rest"], language)
    # The title of a work or of a species may be in another language: "Ples v dežju is a film".
    is_foreign = kind == "name" and _is_foreign(words, language)
    if not (_is_capitalized(words[-1]) or is_foreign):
        return 0
    has_function_word = not language.function_words.isdisjoint(words)
    # "Nicholas the Small (1322 – 1358) was a duke": years show where the name of a person ends.
    is_person = has_function_word and _YEAR.search(found["between"]) is not None
    if kind in ("", "person") and not is_person:
        # A single word that no other rule finds: "Bankview is a community".
        determined = found["rest"].partition(" ")[0] in language.determiners
        is_known = language.capitalizes_nouns or words[0].lower() in common_words(language.code)
        if not is_alone or is_known or not determined:
            return 0
    if not (found["open"] and found["close"]):
        # Without quotation marks, only titles of works have such words.
        is_doubtful = (
            begins_with_function_word
            or any(word[-1] in ":," for word in words)
            or not _CONJUNCTIONS.isdisjoint(words)
            or (is_alone and has_article)
            or (language.capitalizes_nouns and (has_article or is_alone or has_function_word))
        )
        if is_doubtful and kind != "name":
            return 0
        content_words = (word for word in words if word not in language.function_words)
        if not (is_foreign or all(map(_is_capitalized, content_words))):
            return 0
    return len(" ".join(words))


def _is_capitalized(word: str) -> bool:
    return word[0].isupper() or word[0].isdigit()


def _is_foreign(words: list[str], language: Language) -> bool:
    """Return whether a name has words in lower case, and none of them is of the language.

    Short words are ignored, since many languages have them: den, la, ton.
    """
    lower = [word for word in words if word.islower() and len(word) > MAX_SHORT_WORD_CHARS]
    known = common_words(language.code) | language.function_words
    return bool(lower) and known.isdisjoint(lower)


def _find_kind(rest: str, language: Language) -> str:
    """Return the type that the noun of a definition shows; "" if it shows none."""
    kind = ""
    for word in rest.split()[:MAX_WORDS_TO_NOUN]:
        if word in _DASHES or word in _ORDINALS:
            continue
        if word in language.function_words and word not in language.determiners:
            break
        bare = word.rstrip(FINAL_PUNCTUATION)
        shown = cue_type(bare) or ("thing" if bare in TYPE_WORDS else "")
        # In "film director", the last noun counts.
        if kind and not shown:
            break
        kind = shown or kind
        if bare != word and (kind or word[-1] != ","):
            break
    return kind


@cache
def _law_pattern(code: str) -> re.Pattern[str] | None:
    laws = _WORDS["laws"].get(code)
    # A pattern that begins with a capital is faster without a boundary before it.
    boundary = "" if laws and laws.startswith("[A-Z]") else r"\b"
    return re.compile(rf"{boundary}(?:{laws})") if laws else None


def find_law_names(text: str, language: Language) -> Iterator[tuple[int, int]]:
    """Yield the spans of names with words in lower case: code du travail, Weil am Rhein."""
    if pattern := _law_pattern(language.code):
        yield from (match.span() for match in pattern.finditer(text))
    if language.code == "es":
        yield from (match.span() for match in _SPANISH_COURT.finditer(text))
    if language.code == "fr":
        yield from (match.span() for match in _FRENCH_BODIES.finditer(text))
    if language.capitalizes_nouns:
        yield from _find_german_names(text)
    if "al-" in text:
        yield from _find_arabic_names(text)
    # Most texts have none of these parts, which is tested fast.
    if "iP" in text or "OS" in text or "iC" in text:
        for match in _LOWER_PRODUCT.finditer(text):
            lower = _LOWER_START.search(text, max(0, match.start() - 5), match.start())
            yield (lower or match).start(), match.end()


def _find_arabic_names(text: str) -> Iterator[tuple[int, int]]:
    """Yield Arabic names that begin with an article: al-Shabaab, but not Ali al-Sadr."""
    for match in _ARABIC.finditer(text):
        before = max(0, match.start() - MAX_HEAD_CHARS)
        if not _NAME_BEFORE.search(text, before, match.start()):
            yield match.span()


def _find_german_names(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of German streets, treaties, organizations and towns, found by their ends."""
    for tail in _GERMAN_TAILS:
        for match in tail.finditer(text):
            head = _find_head(text, match.start())
            needs_body = text[match.start()] == " "  # Verband deutscher Musikschulen
            if needs_body and not (head and is_organization_word(head.group())):
                continue
            if head and head.group() not in _NO_HEADS:
                yield head.start(), match.end()
    for match in _GERMAN_RIVER.finditer(text):
        if head := _find_head(text, match.start()):
            known = {head.group().lower(), text[head.start() : match.end()].lower()}
            is_town = PLACE_END.search(head.group()) or not is_certain_noun(head.group())
            if is_town or not large_place_names().isdisjoint(known):
                yield head.start(), match.end()


def _find_head(text: str, end: int) -> re.Match[str] | None:
    return _HEAD_BEFORE.search(text, max(0, end - MAX_HEAD_CHARS), end)

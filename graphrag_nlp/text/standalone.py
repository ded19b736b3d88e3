"""Sentences that are quoted alone: without datelines, and with all that they refer to."""

import re

import polars as pl

from graphrag_nlp.text.languages import expand_pattern, read_lists

_LISTS = read_lists("graphrag_nlp/text/data/standalone")
_DATELINE = re.compile(expand_pattern(_LISTS["patterns"], "DATELINE"))
_LEAD_IN, _SIGNATURE = (
    re.compile(expand_pattern(_LISTS["patterns"], name)) for name in ("LEAD_IN", "SIGNATURE")
)
# Texts that do not match have neither a lead-in nor a signature; this test is fast.
_MAY_HAVE_EDGES = r"[):/]|^(?:Share|Teilen|Diesen|Partager|Media|This content|Send) "
# A dateline ends with a dash.
_DASH_NEAR_START = r"^.{2,110}?(?:[—–]|--|\s-|\)-)"
_LAYOUT, _SECOND, _BOILERPLATE, _COMPARISON, _GLUED = (
    expand_pattern(_LISTS["patterns"], name)
    for name in ("LAYOUT", "SECOND", "BOILERPLATE", "COMPARISON", "GLUED")
)
_OPENING_PHRASES = {
    code: f"^(?:{phrases.replace(' |', '|')})"
    for code, phrases in _LISTS["opening_phrases"].items()
}
_UNSPACED_OPENING = "^(?:" + "|".join(_LISTS["unspaced_openings"].split()) + ")"
_QUOTATION = re.compile(r'"[^"]*"|“[^“”]*”|„[^„“”]*[“”]|«[^«»]*»|「[^「」]*」')
_MARKS = '"“”„«»「」'
_QUESTION = r'[?？؟]["”“»」]?$'


def find_edges(text: str) -> tuple[int, int]:
    """Return the start and end of a sentence without what a page or agency added around it.

    A page may add an offer to share or a credit before it, and an agency its name after it.
    """
    lead_in, signature = _LEAD_IN.match(text), _SIGNATURE.search(text)
    start, end = lead_in.end() if lead_in else 0, signature.start() if signature else len(text)
    return (start, end) if start < end else (0, len(text))


def _cut_edges(text: str) -> str:
    start, end = find_edges(text)
    return text[start:end]


def trim_sentences(texts: pl.Series) -> pl.Series:
    """Remove datelines before sentences, marks of lists and tables, and glued second sentences.

    Offers to share, credits and signatures are removed, too (see `find_edges`). A result is a part
    of the sentence, so that it can be found in the document.
    """
    texts = texts.str.replace_all(_LAYOUT, "$1")
    texts = texts.str.replace(_SECOND, "$1")
    rows = texts.str.contains(_MAY_HAVE_EDGES).arg_true()
    texts = texts.scatter(rows, [_cut_edges(text) for text in texts.gather(rows)])
    rows = texts.str.contains(_DASH_NEAR_START).arg_true()
    return texts.scatter(rows, [_DATELINE.sub("", text) for text in texts.gather(rows)])


def stand_alone(texts: pl.Series, languages: pl.Series) -> pl.Series:
    """Return for each sentence whether a reader understands it without the text around it.

    A question, a caption or credit, a quotation without the name of its speaker, and a sentence
    that begins with a pronoun, a conjunction or a contrast do not stand alone. Nor do sentences
    that a lost line break has joined.
    """
    text, language = pl.col("text"), pl.col("language")
    codes = set(languages.unique())
    first = text.str.extract(r"(\p{L}+)", 1).str.to_lowercase()
    is_opening = pl.any_horizontal(
        False,
        *(
            (language == code) & first.is_in(words.split())
            for code, words in _LISTS["openings"].items()
            if code in codes
        ),
    )
    is_unclear = (
        text.str.contains(f"{_QUESTION}|{_UNSPACED_OPENING}|{_COMPARISON}|{_BOILERPLATE}|{_GLUED}")
        | pl.any_horizontal(
            False,
            *(
                (language == code) & text.str.contains(pattern)
                for code, pattern in _OPENING_PHRASES.items()
                if code in codes
            ),
        )
        | (is_opening & ~text.str.contains(f"^[{_MARKS}]"))
        | first.is_null()
    )
    stands = pl.DataFrame({"text": texts, "language": languages}).select(~is_unclear).to_series()
    rows = texts.str.contains(f"[{_MARKS}]").arg_true()
    quoted = list(map(_names_speaker, texts.gather(rows)))
    return stands.scatter(rows, stands.gather(rows) & pl.Series(quoted, dtype=pl.Boolean))


def _names_speaker(text: str) -> bool:
    """Return whether a quotation in a sentence is complete, and its speaker named if needed.

    A sentence that begins with a quotation needs the name of the speaker.
    """
    rest = _QUOTATION.sub(" ", text)
    if any(mark in rest for mark in _MARKS):
        # One end of a quotation is in another sentence.
        return False
    if text[0] not in _MARKS:
        return True
    return any(word[0].isupper() or word[0] > "\u2e80" for word in rest.split())

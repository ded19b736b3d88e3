"""Names without what may differ between two ways of writing them."""

import polars as pl

# Letters that no accent can be taken off.
_PLAIN = {"ł": "l", "ø": "o", "đ": "d", "ð": "d", "þ": "th", "ß": "ss", "æ": "ae", "œ": "oe"}
# A word of a text, the possessive with it.
WORD = r"[\p{L}\p{N}][\p{L}\p{M}\p{N}]*(?:['’]s\b)?"
# Scripts that set no spaces between words.
UNSPACED = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]"
# What different spellings of a name have for one sound, longest first.
_ALIKE = (
    ("tsch|tch|sch|sh|ch|z", "s"),
    ("ph|v|w", "f"),
    ("ck|c|q", "k"),
    ("x", "ks"),
    ("dt|th|d", "t"),
)


def folded_name(name: pl.Expr) -> pl.Expr:
    """Take case, accents, the possessive and punctuation off a name; words have a space between.

    Marks are taken off Latin, Greek and Cyrillic letters only: elsewhere they are vowels.
    """
    plain = name.str.to_lowercase().str.normalize("NFKD")
    plain = plain.str.replace_all(r"([\p{Latin}\p{Greek}\p{Cyrillic}])\p{Mn}+", "$1")
    return (
        plain.str.normalize("NFC")
        .str.replace_many(list(_PLAIN), list(_PLAIN.values()))
        .str.replace_all(r"['’]s\b", "")
        .str.replace_all(r"[^\p{L}\p{M}\p{N}]+", " ")
        .str.strip_chars(" ")
    )


def sound(word: pl.Expr) -> pl.Expr:
    """Return what spellings of a folded word have in common; empty if it says too little.

    That is its consonants, those that are easily confused as one and each run once, and
    whether it begins with a vowel. Words of Latin letters alone have a sound.
    """
    plain = word
    for written, as_one in _ALIKE:
        plain = plain.str.replace_all(written, as_one)
    plain = plain.str.replace(r"^[aeiouyhj]+", "A").str.replace_all(r"[aeiouyhj]+", "")
    for letter in "bfgklmnprst":
        plain = plain.str.replace_all(f"{letter}{letter}+", letter)
    tells = word.str.contains(r"^[a-z]{4,}$") & (plain.str.len_bytes() > 1)
    return pl.when(tells).then(plain).otherwise(pl.lit(""))

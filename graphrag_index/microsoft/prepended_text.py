"""Characters of a text unit that its document lacks: metadata lines, halves of characters.

Microsoft GraphRAG can put metadata before each text unit (`chunks.prepend_metadata`), and it can
cut a text inside the bytes of a character. Our `text` has only the characters of the document. The
characters before and after are fields of the column `metadata`.
"""

import json

import polars as pl

# Fields of the column `metadata`.
_BEFORE, _AFTER = "microsoft_text_before", "microsoft_text_after"
_TEXT = pl.col("text")
# The replacement character remains where a text was cut inside the bytes of a character.
CUT_MARK = "\ufffd"


def separate_text(text_units: pl.LazyFrame) -> pl.LazyFrame:
    """Move the first `n_before` and the last `n_after` characters from `text` to `metadata`."""
    is_longer = pl.col("n_before") + pl.col("n_after") > 0
    fields = pl.struct(
        _TEXT.str.head("n_before").alias(_BEFORE), _TEXT.str.tail("n_after").alias(_AFTER)
    )
    return text_units.with_columns(
        text=_cut_text(pl.col("n_before"), pl.col("n_after")),
        metadata=pl.when(is_longer).then(fields.struct.json_encode()).otherwise("metadata"),
    ).drop("n_before", "n_after")


def restore_text(text_units: pl.LazyFrame) -> pl.LazyFrame:
    """Put the characters in `metadata` back around `text`; other rows are unchanged."""
    return text_units.with_columns(text=_read_field(_BEFORE) + _TEXT + _read_field(_AFTER))


def separate_text_again(text_units: pl.LazyFrame) -> pl.LazyFrame:
    """Remove the characters that `restore_text` added."""
    lengths = (_read_field(name).str.len_chars().cast(pl.Int64) for name in (_BEFORE, _AFTER))
    return text_units.with_columns(text=_cut_text(*lengths))


def read_prepended(metadata: str | None) -> str:
    """Return the metadata lines before a text unit as one line; empty if there are none."""
    if metadata is None or not metadata.startswith(f'{{"{_BEFORE}":'):
        return ""
    return " ".join(json.loads(metadata)[_BEFORE].rstrip(CUT_MARK).split())


def _cut_text(n_before: pl.Expr, n_after: pl.Expr) -> pl.Expr:
    n_chars = _TEXT.str.len_chars().cast(pl.Int64)
    return _TEXT.str.slice(n_before, n_chars - n_before - n_after)


def _read_field(name: str) -> pl.Expr:
    return pl.col("metadata").str.json_path_match(f"$.{name}").fill_null("")

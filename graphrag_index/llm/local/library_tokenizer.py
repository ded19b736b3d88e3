"""Tokenizers of models that are not in this package, by the library `tokenizers`."""

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from graphrag_index.errors import ModelError, describe_error


def check_libraries(model: str, *libraries: str) -> None:
    """Raise `ModelError` if a library that a model, such as "reader x", needs is missing."""
    for library in libraries:
        if importlib.util.find_spec(library) is None:
            raise ModelError(
                f"The {model} needs the library {library}, which is not installed: "
                'install it with `pip install "graphrag-index[minilm]"`.'
            )


def open_tokenizer(path: Path, model: str) -> Any:
    """Open the `tokenizer.json` of a model, such as "reader x", without padding and truncation."""
    import tokenizers

    try:
        tokenizer = tokenizers.Tokenizer.from_file(str(path))
    except Exception as error:  # the library has no class of its errors
        raise ModelError(
            f"{path}, the tokenizer of the {model}, cannot be read: "
            f"{describe_error(error)[:200]}; get the file again."
        ) from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def encode_texts(
    tokenizer: Any, texts: Sequence[str], *, add_special_tokens: bool = True
) -> list[list[int]]:
    """Return the numbers of the tokens of each text; a lone surrogate counts as U+FFFD."""
    # The library rejects surrogates: join pairs of them, and replace the others.
    valid = [text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") for text in texts]
    encodings = tokenizer.encode_batch_fast(valid, add_special_tokens=add_special_tokens)
    return [encoding.ids for encoding in encodings]

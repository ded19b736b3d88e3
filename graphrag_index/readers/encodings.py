"""Detection of the encoding of a text file, and reading of the file.

The detection tries, in this order: a byte order mark; UTF-16, found by null bytes or frequent
characters; the escape sequences of ISO 2022 and HZ; valid UTF-8; for Latin script, the encoding
whose alphabet contains the letters; for other scripts, charset-normalizer. An uncertain result is
logged with words of the file.
`benchmarks/file_encodings.py` compares this order with charset-normalizer alone.
"""

import codecs
import io
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple, TextIO

from graphrag_index.readers.document import NotText, UnreadableFile, normalize_newlines
from graphrag_nlp.text.languages import read_lists

logger = logging.getLogger(__name__)

# Byte order marks, longest first: the mark of UTF-32 begins with the mark of UTF-16.
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
SAMPLE_BYTES = 1 << 16  # bytes of the file that the detection examines
_BYTES_PER_READ = 1 << 18  # while it checks whether the file is UTF-8
_CONTROL_BYTES = bytes({*range(32)} - {*b"\t\n\f\r\x1b"})

_ENCODING_LISTS = read_lists("graphrag_index/readers/data/encodings")
_ALPHABETS = {name: text.split() for name, text in _ENCODING_LISTS["alphabets"].items()}
_ESCAPES: dict[str, str] = _ENCODING_LISTS["escapes"]
_CANDIDATE_ENCODINGS = _ENCODING_LISTS["candidates"].split()
# Minimum distinct non-ASCII letters for a certain result; cp1252 is certain without any.
_MIN_DISTINCT_LETTERS = 3
# Maximum share of implausible characters (`chaos` in charset-normalizer) of a certain result.
_MAX_GARBLED_SHARE = 0.04
_FREQUENT_EAST_ASIAN_CHARACTER = re.compile(_ENCODING_LISTS["frequent_east_asian"])
_EAST_ASIAN_CHARACTER = re.compile(_ENCODING_LISTS["east_asian"])
_NON_TEXT_CHARACTER = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\ufffd]")
_MIN_UTF16_BYTES = 16  # a file with fewer bytes may look like UTF-16 by chance
_PUNCTUATION = re.compile(r"[\xa0„“”‚‘’‹›«»–—…]")
# A symbol outside words, and ² or ³ after m. Other symbols in words are misread letters.
_PLAUSIBLE_SYMBOL = re.compile(
    r"(?:(?<![^\W\d_])(?<![^\x00-\x7f])[^\w\s\x80-\x9f]|(?<=m)[²³])(?![^\W\d_])(?![^\x00-\x7f])"
)
_ASCII_RUN = re.compile(r"[\x00-\x7f]+")
# Quotation marks in positions that correct text never has: inside a word, or joining two words.
_MISPLACED_QUOTATION_MARK = re.compile(r"(?<=[^\W\d_])(?:[„‚]|[“”‹›«»](?=[^\W\d_]))")
_NON_ASCII_LETTER = re.compile(r"[^\W\d_\x00-\x7f]")
_LETTER_INSIDE_WORD = re.compile(r"(?<=[^\W\d_])[^\W\d_\x00-\x7f]")
_NON_ASCII_WORD = re.compile(r"\w*[^\x00-\x7f]\w*")


class DetectedEncoding(NamedTuple):
    """A detected encoding."""

    name: str
    doubtful_words: str = ""  # sample words of the file if the result is uncertain


@contextmanager
def open_text(path: Path, name: str, encoding: str) -> Iterator[TextIO]:
    """Open a file of records as text, with unchanged line breaks.

    Bytes that cannot be decoded become surrogates, so only the damaged record is lost. Raises
    UnreadableFile if the file is not text.
    """
    with path.open("rb") as stream:
        codec = _choose_encoding(encoding, stream, name)
        stream.seek(0)
        with io.TextIOWrapper(stream, codec, errors="surrogateescape", newline="") as text:
            try:
                yield text
            except UnicodeError as error:
                raise UnreadableFile(_describe_unicode_error(error)) from error


def read_text(
    path: Path, name: str, encoding: str, declared: re.Pattern[bytes] | None = None
) -> str:
    """Read a whole file as text; every line break becomes a line feed.

    Messages show `name`. `declared` is a pattern that finds the encoding declared in a file, as in
    HTML; it is used if the bytes are ambiguous. Raises UnreadableFile if the file is damaged or
    not text.
    """
    data = path.read_bytes()
    found = declared.search(data, 0, 2048) if declared else None
    codec = _choose_encoding(
        encoding, io.BytesIO(data), name, found[1].decode("ascii") if found else None
    )
    try:
        return normalize_newlines(data.decode(codec))
    except UnicodeError as error:
        raise UnreadableFile(_describe_unicode_error(error)) from error


def _choose_encoding(
    encoding: str, stream: BinaryIO, file: str, declared: str | None = None
) -> str:
    """Return the configured encoding; for "auto", detect it, and warn if it is uncertain."""
    if encoding != "auto":
        # The codec utf-8-sig reads UTF-8 with or without a byte order mark.
        return "utf-8-sig" if codecs.lookup(encoding).name == "utf-8" else encoding
    found = detect_encoding(stream, declared)
    if found.doubtful_words:
        logger.warning(
            "%s: the encoding is not certain. Read as %s, the file has the words %s. "
            "If these are wrong, set load_documents.encoding.",
            *(file, found.name, found.doubtful_words),
        )
    return found.name


def _describe_unicode_error(error: UnicodeError) -> str:
    if isinstance(error, UnicodeDecodeError):
        byte = error.object[error.start]
        return f"is not valid {error.encoding}: byte {error.start:,} is 0x{byte:02x}"
    return f"cannot be decoded: {error}"


def detect_encoding(stream: BinaryIO, declared: str | None = None) -> DetectedEncoding:
    """Detect the encoding of a file; raise UnreadableFile if it is unknown."""
    head = stream.read(SAMPLE_BYTES)
    name = _detect_wide_or_escaped(head)
    if name == "iso2022_cn":
        raise UnreadableFile(f"is in the encoding {name}, which is not read: save it as UTF-8")
    if name:
        return DetectedEncoding(name)
    if looks_binary(head):
        raise NotText("looks binary; if it is text, set load_documents.encoding")
    stream.seek(0)
    invalid = _find_first_non_utf8_byte(stream)
    if invalid is None:
        return DetectedEncoding("utf-8")
    start = max(0, invalid - SAMPLE_BYTES // 2)
    stream.seek(start)
    sample = stream.read(SAMPLE_BYTES)
    if len(sample) == SAMPLE_BYTES:
        # Trim the sample to whole lines, so that no character is cut.
        end = sample.rfind(b"\n", invalid - start)
        sample = sample[sample.find(b"\n", 0, invalid - start) + 1 : end if end > 0 else None]
    text = sample.decode("utf-8", "replace")
    if sum(not character.isascii() for character in text) > 3 * text.count("\ufffd"):
        # Most non-ASCII characters are valid: treat the file as UTF-8 with damaged bytes.
        return DetectedEncoding("utf-8")
    known = _normalize_declared_encoding(declared)
    return DetectedEncoding(known) if known else _detect_legacy_encoding(sample)


def _find_first_non_utf8_byte(stream: BinaryIO) -> int | None:
    """Return the offset of the first byte that is not UTF-8; None if all bytes are UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    position = 0
    while True:
        chunk = stream.read(_BYTES_PER_READ)
        if 0 in chunk:
            raise NotText(f"looks binary: null at byte {position + chunk.index(0):,}")
        try:
            decoder.decode(chunk, final=not chunk)
        except UnicodeDecodeError as error:
            return position + error.start
        if not chunk:
            return None
        position += len(chunk)


def _detect_utf16(head: bytes) -> str:
    """Detect UTF-16 and its byte order; return "" if the bytes are probably not UTF-16.

    UTF-16 is detected by the null bytes of ASCII characters, or by frequent Chinese, Japanese or
    Korean characters, which are rare if the text is read in the wrong byte order.
    """
    if len(head) % 2:
        return ""
    # Drop the last two bytes of a sample, which may be half of a surrogate pair.
    whole = head[:-2] if len(head) >= SAMPLE_BYTES else head
    n_big, n_little = head[::2].count(0), head[1::2].count(0)
    if min(n_big, n_little) == 0 and max(n_big, n_little) > len(head) // 10:
        name = "utf-16-le" if n_little > n_big else "utf-16-be"
        if not _NON_TEXT_CHARACTER.search(whole.decode(name, "replace")):
            return name
    if len(head) < _MIN_UTF16_BYTES or (0 not in head and _can_decode(head, "utf-8")):
        return ""
    texts = {name: whole.decode(name, "replace") for name in ("utf-16-le", "utf-16-be")}
    found = [
        name
        for name, text in texts.items()
        if len(_FREQUENT_EAST_ASIAN_CHARACTER.findall(text)) > 0.05 * len(text)
        and len(_EAST_ASIAN_CHARACTER.findall(text)) > 0.97 * len(text)
    ]
    return found[0] if len(found) == 1 else ""


def looks_binary(head: bytes) -> bool:
    """Return whether the first bytes of a file are not those of a text in any known encoding."""
    is_odd = 0 in head or len(head.translate(None, _CONTROL_BYTES)) < 0.95 * len(head)
    return is_odd and not _detect_wide_or_escaped(head)


def _detect_wide_or_escaped(head: bytes) -> str:
    marked = (name for mark, name in _BYTE_ORDER_MARKS if head.startswith(mark))
    return next(marked, "") or _detect_utf16(head) or _detect_escapes(head)


def _detect_escapes(head: bytes) -> str:
    """Detect an encoding of seven bits by its escape sequences; return "" if there are none."""
    if not head.isascii():
        return ""
    for pattern, names in _ESCAPES.items():
        if re.search(pattern.encode("ascii"), head):
            variants = names.split()
            return next((name for name in variants if _can_decode(head, name)), variants[0])
    if b"~{" not in head or not _can_decode(head, "hz"):
        return ""
    # Source code may have ~{ and ~}, so frequent characters must confirm HZ.
    return "hz" if _FREQUENT_EAST_ASIAN_CHARACTER.search(head.decode("hz", "ignore")) else ""


def _can_decode(head: bytes, encoding: str) -> bool:
    """Return whether the bytes are in an encoding. The last character may be incomplete."""
    try:
        codecs.getincrementaldecoder(encoding)().decode(head)
    except (LookupError, UnicodeDecodeError):
        return False
    return True


def _normalize_declared_encoding(declared: str | None) -> str | None:
    try:
        name = codecs.lookup(declared).name if declared else None
    except LookupError:
        return None
    # Treat Latin-1 as cp1252, as the WHATWG Encoding Standard does.
    if name in ("iso8859-1", "ascii"):
        return "cp1252"
    return None if name == "utf-8" else name


def _detect_legacy_encoding(sample: bytes) -> DetectedEncoding:
    """Detect an encoding that is older than Unicode."""
    from charset_normalizer import from_bytes

    errors = {name: n for name in _ALPHABETS if (n := _count_misreadings(sample, name)) is not None}
    latin = min(errors, key=errors.__getitem__, default=None)
    is_latin = len(re.findall(rb"[A-Za-z]", sample)) > 2 * len(re.findall(rb"[\x80-\xff]", sample))
    is_plain_latin = latin is not None and not errors[latin] and is_latin
    matches = [] if is_plain_latin else list(from_bytes(sample, cp_isolation=_CANDIDATE_ENCODINGS))
    if matches and matches[0].encoding not in _ALPHABETS:
        best = matches[0]
        name = best.encoding
        has_equal = any(
            (match.chaos, match.coherence) == (best.chaos, best.coherence) for match in matches[1:]
        )
        is_guess = has_equal or best.chaos > _MAX_GARBLED_SHARE or is_latin
    elif latin is None:
        raise NotText("is in an unknown encoding: name it in load_documents.encoding")
    else:
        name = latin
        letters = set(_NON_ASCII_LETTER.findall(sample.decode(latin).lower()))
        has_few_letters = latin != "cp1252" and len(letters) < _MIN_DISTINCT_LETTERS
        is_guess = errors[latin] > 0 or has_few_letters
    words = dict.fromkeys(_NON_ASCII_WORD.findall(sample.decode(name, "replace")))
    examples = ", ".join([repr(word[:40]) for word in words][:3])
    return DetectedEncoding(name, examples if is_guess else "")


def _count_misreadings(sample: bytes, encoding: str) -> int | None:
    """Count implausible characters in a decoded sample; None if it cannot be decoded.

    Implausible are characters outside the alphabet, quotation marks inside a word, and upper-case
    letters next to a lower-case letter inside a word. The alphabet with the lowest count is used.
    """
    try:
        text = sample.decode(encoding)
    except UnicodeDecodeError:
        return None
    odd = len(_MISPLACED_QUOTATION_MARK.findall(text)) + sum(
        found[0].isupper()
        and (text[found.start() - 1].islower() or text[found.end() : found.end() + 1].islower())
        for found in _LETTER_INSIDE_WORD.finditer(text)
    )
    text = _ASCII_RUN.sub("", _PLAUSIBLE_SYMBOL.sub("", _PUNCTUATION.sub(" ", text))).lower()
    return odd + min(sum(c not in letters for c in text) for letters in _ALPHABETS[encoding])

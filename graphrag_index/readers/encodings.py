"""Which encoding a file is in, and reading it as text.

Files that are not Unicode are rare and short of evidence. What decides, in this
order: a byte order mark; valid UTF-8; the null bytes of UTF-16; for other scripts
what charset-normalizer finds; for Latin script the alphabet that has most of
the letters, cp1252 where several do.
"""

import codecs
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TextIO

from graphrag_index.readers.document import UnreadableFile, normalize_newlines

# Longer marks first: that of UTF-32 begins with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# Bytes that are looked at together to tell an encoding.
_SAMPLE = 1 << 16
_CHUNK = 1 << 18
_CONTROLS = bytes({*range(32)} - {*b"\t\n\f\r\x1b"})

# Letters beyond ASCII of the languages that an encoding was made for.
_ALPHABETS = {
    "cp1252": (
        *("äöüß", "àâæçéèêëîïôœùûüÿ", "áéíñóúü¿¡ºª", "áâãàçéêíóôõúü", "àèéìíîòóùú", "åäöéü"),
        *("æøåéèòóôäö", "áéíóúýþæöð", "àçèéíïòóúü·", "áéèëïíóöúü"),
    ),
    "cp1250": (
        *("ąćęłńóśźż", "áčďéěíňóřšťúůýž", "áäčďéíĺľňóôŕšťúýž", "áéíóöőúüű"),
        *("ăâîşţ", "čćđšž"),
    ),
    "iso8859_2": ("ąćęłńóśźż", "áčďéěíňóřšťúůýž", "áäčďéíĺľňóôŕšťúýž", "ăâîşţ", "čćđšž"),
    "cp1254": ("çğıi̇öşüâîû",),
    "cp1257": ("ąčęėįšųūž", "āčēģīķļņšūž", "äõöüšž"),
}
# What charset-normalizer chooses from; it may take any Latin script for another.
_CANDIDATES = [
    *_ALPHABETS,
    *("cp1251", "cp1253", "cp1255", "cp1256", "koi8_r"),
    *("cp932", "euc_jp", "gb18030", "big5", "cp949"),
]
_PUNCTUATION = re.compile(r"[\xa0„“”‚‘’‹›«»–—…]")
# Signs that stand by themselves tell nothing; inside a word they are letters read wrongly.
# In m² and m³ they are not.
_LONE_SIGN = re.compile(
    r"(?:(?<![^\W\d_])(?<![^\x00-\x7f])[^\w\s\x80-\x9f]|(?<=m)[²³])(?![^\W\d_])(?![^\x00-\x7f])"
)
_ASCII = re.compile(r"[\x00-\x7f]+")


@contextmanager
def open_text(path: Path, encoding: str) -> Iterator[TextIO]:
    """Open a file of records as text, newlines as they are.

    Bytes that the encoding does not have become surrogates, so that one damaged
    record does not cost the others.

    Raises
    ------
    UnreadableFile
        The file is not text, or in no encoding that can be told.
    """
    with path.open("rb") as stream:
        name = detect_encoding(stream) if encoding == "auto" else _unmarked(encoding)
        stream.seek(0)
        with io.TextIOWrapper(stream, name, errors="surrogateescape", newline="") as text:
            try:
                yield text
            except UnicodeError as error:
                raise UnreadableFile(_invalid(error)) from error


def read_text(path: Path, encoding: str, declared: re.Pattern[bytes] | None = None) -> str:
    """Read a whole file as text with ``\\n`` newlines.

    `declared` finds the encoding that the file names for itself; it is believed
    where the bytes do not tell better.

    Raises
    ------
    UnreadableFile
        The file is not text, is damaged, or in no encoding that can be told.
    """
    data = path.read_bytes()
    if encoding == "auto":
        found = declared.search(data, 0, 2048) if declared else None
        name = detect_encoding(io.BytesIO(data), found[1].decode("ascii") if found else None)
    else:
        name = _unmarked(encoding)
    try:
        return normalize_newlines(data.decode(name))
    except UnicodeError as error:
        raise UnreadableFile(_invalid(error)) from error


def detect_encoding(stream: BinaryIO, declared: str | None = None) -> str:
    """Find the encoding of a file, reading all of it in pieces.

    Raises
    ------
    UnreadableFile
        It looks binary, or in no encoding that can be told.
    """
    head = stream.read(_SAMPLE)
    for mark, name in _MARKS:
        if head.startswith(mark):
            return name
    if 0 in head:
        return _utf16_by_nulls(head)
    if len(head.translate(None, _CONTROLS)) < 0.95 * len(head):
        raise UnreadableFile("looks binary")
    stream.seek(0)
    invalid = _first_invalid(stream)
    if invalid is None:
        return "utf-8"
    start = max(0, invalid - _SAMPLE // 2)
    stream.seek(start)
    sample = _whole_lines(stream.read(_SAMPLE), invalid - start)
    if _is_damaged_utf8(sample):
        return "utf-8"
    return _known(declared) or _legacy(sample)


def _first_invalid(stream: BinaryIO) -> int | None:
    """Find the first byte that is not UTF-8; None if all are."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    position = 0
    while True:
        chunk = stream.read(_CHUNK)
        if 0 in chunk:
            raise UnreadableFile(f"looks binary: null at byte {position + chunk.index(0):,}")
        try:
            decoder.decode(chunk, final=not chunk)
        except UnicodeDecodeError as error:
            return position + error.start
        if not chunk:
            return None
        position += len(chunk)


def _utf16_by_nulls(head: bytes) -> str:
    """Tell the byte order of UTF-16 by where the null bytes of its ASCII characters are."""
    head = head[: len(head) // 2 * 2]
    first, second = head[::2].count(0), head[1::2].count(0)
    name = "utf-16-le" if second > first else "utf-16-be"
    if min(first, second) == 0 and max(first, second) > len(head) // 10:
        # The last pair may be the first half of a character.
        text = head[:-2].decode(name, "replace")
        if "\ufffd" not in text and not re.search(r"[\x00-\x08\x0e-\x1a\x1c-\x1f]", text):
            return name
    raise UnreadableFile("looks binary")


def _whole_lines(sample: bytes, at: int) -> bytes:
    """Cut a sample at line ends around a place, since its ends may cut a character in two."""
    if len(sample) < _SAMPLE:
        return sample
    end = sample.rfind(b"\n", at)
    return sample[sample.find(b"\n", 0, at) + 1 : end if end > 0 else None]


def _is_damaged_utf8(sample: bytes) -> bool:
    """Tell whether bytes are UTF-8 in spite of a few that are not."""
    text = sample.decode("utf-8", "replace")
    damaged = text.count("\ufffd")
    return sum(not character.isascii() for character in text) > 3 * damaged


def _known(declared: str | None) -> str | None:
    try:
        name = codecs.lookup(declared).name if declared else None
    except LookupError:
        return None
    # Pages that name Latin-1 are in cp1252, says the WHATWG Encoding Standard.
    if name in ("iso8859-1", "ascii"):
        return "cp1252"
    return None if name == "utf-8" else name


def _legacy(sample: bytes) -> str:
    """Choose among the encodings from before Unicode."""
    from charset_normalizer import from_bytes

    misread = {name: count for name in _ALPHABETS if (count := _misread(sample, name)) is not None}
    latin = min(misread, key=misread.__getitem__, default=None)
    if latin is not None and not misread[latin] and _is_latin(sample):
        return latin
    best = from_bytes(sample, cp_isolation=_CANDIDATES).best()
    if best is not None and best.encoding not in _ALPHABETS:
        return str(best.encoding)
    if latin is None:
        raise UnreadableFile("is in an unknown encoding: name it in load_documents.encoding")
    return latin


def _is_latin(sample: bytes) -> bool:
    """Tell whether most letters are ASCII."""
    return len(re.findall(rb"[A-Za-z]", sample)) > 2 * len(re.findall(rb"[\x80-\xff]", sample))


def _misread(sample: bytes, encoding: str) -> int | None:
    """Count the characters that the best alphabet of an encoding lacks; None if it cannot be."""
    try:
        text = sample.decode(encoding)
    except UnicodeDecodeError:
        return None
    text = _ASCII.sub("", _LONE_SIGN.sub("", _PUNCTUATION.sub(" ", text))).lower()
    return min(len(text.translate(_without(letters))) for letters in _ALPHABETS[encoding])


def _without(letters: str) -> dict[int, None]:
    return dict.fromkeys(map(ord, letters))


def _unmarked(encoding: str) -> str:
    """Read a named UTF-8 with or without its mark."""
    return "utf-8-sig" if codecs.lookup(encoding).name == "utf-8" else encoding


def _invalid(error: UnicodeError) -> str:
    if isinstance(error, UnicodeDecodeError):
        byte = error.object[error.start]
        return f"is not valid {error.encoding}: byte {error.start:,} is 0x{byte:02x}"
    return f"cannot be decoded: {error}"

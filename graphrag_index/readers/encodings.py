"""Which encoding a file is in, and reading it as text.

Files that are not Unicode are rare and short of evidence. What decides, in this
order: a byte order mark; valid UTF-8; the null bytes and the usual characters of
UTF-16; for other scripts what charset-normalizer finds; for Latin script the alphabet
that has most of the letters, cp1252 where several do. A guess that may well be wrong
is told, with words of the file.
"""

import codecs
import io
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple, TextIO

from graphrag_index.readers.document import UnreadableFile, listed, normalize_newlines

logger = logging.getLogger(__name__)

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
_WESTERN = (
    *("äöüß", "àâæçéèêëîïôœùûüÿ", "áéíñóúü¿¡ºª", "áâãàçéêíóôõúü", "àèéìíîòóùú", "åäöéü"),
    *("æøåéèòóôäö", "áéíóúýþæöð", "àçèéíïòóúü·", "áéèëïíóöúü"),
)
_CENTRAL = (
    *("ąćęłńóśźż", "áčďéěíňóřšťúůýž", "áäčďéíĺľňóôŕšťúýž", "áéíóöőúüű"),
    *("ăâîşţ", "čćđšž"),
)
# The first of equals is taken: those of DOS and of the old Macintosh come last.
_ALPHABETS = {
    "cp1252": _WESTERN,
    "cp1250": _CENTRAL,
    "iso8859_2": tuple(letters for letters in _CENTRAL if "ű" not in letters),
    "cp1254": ("çğıi̇öşüâîû",),
    "cp1257": ("ąčęėįšųūž", "āčēģīķļņšūž", "äõöüšž"),
    "cp850": _WESTERN,
    "mac_roman": _WESTERN,
    "cp852": _CENTRAL,
}
# What charset-normalizer chooses from; it may take any Latin script for another.
_CANDIDATES = [
    *("cp1252", "cp1250", "iso8859_2", "cp1254", "cp1257"),
    *("cp1251", "cp1253", "cp1255", "cp1256", "koi8_r", "cp866"),
    *("cp932", "euc_jp", "gb18030", "big5", "cp949"),
]
# Letters of an alphabet that a file must show for any encoding but the most usual.
_FEW_LETTERS = 3
# What charset-normalizer calls chaos in a text that it read wrongly.
_CHAOS = 0.04
# Characters that no text of some length in Chinese, Japanese or Korean does without; and all
# that nearly all of such a text is made of.
_USUAL = re.compile("[\u3001\u3002\uff0c的一是不了在有人之のにはをたがでとし이다는을에의가]")
_EAST_ASIAN = re.compile(
    "[\t\n\r -~\u2010-\u2027\u3000-\u30ff\u4e00-\u9fff\uac00-\ud7a3\uff00-\uffef]"
)
# Fewer bytes may look like UTF-16 by chance.
_FEW_BYTES = 16
_PUNCTUATION = re.compile(r"[\xa0„“”‚‘’‹›«»–—…]")
# Signs that stand by themselves tell nothing; inside a word they are letters read wrongly.
# In m² and m³ they are not.
_LONE_SIGN = re.compile(
    r"(?:(?<![^\W\d_])(?<![^\x00-\x7f])[^\w\s\x80-\x9f]|(?<=m)[²³])(?![^\W\d_])(?![^\x00-\x7f])"
)
_ASCII = re.compile(r"[\x00-\x7f]+")
# Within a word, and before it without a space, no quotation marks stand.
_IN_WORD = re.compile(r"(?<=[^\W\d_])(?:[„‚]|[“”‹›«»](?=[^\W\d_]))")
_LETTER = re.compile(r"[^\W\d_\x00-\x7f]")
_LETTER_WITHIN = re.compile(r"(?<=[^\W\d_])[^\W\d_\x00-\x7f]")
_WORD_BEYOND_ASCII = re.compile(r"\w*[^\x00-\x7f]\w*")


class Encoding(NamedTuple):
    """The name of an encoding; and if it is a guess, words of the file as it reads them."""

    name: str
    doubtful: str = ""


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
        is_named = encoding != "auto"
        name = _unmarked(encoding) if is_named else _told(detect_encoding(stream), path)
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
        name = _told(
            detect_encoding(io.BytesIO(data), found[1].decode("ascii") if found else None), path
        )
    else:
        name = _unmarked(encoding)
    try:
        return normalize_newlines(data.decode(name))
    except UnicodeError as error:
        raise UnreadableFile(_invalid(error)) from error


def _told(encoding: Encoding, path: Path) -> str:
    """Give the name of an encoding; say of a guess that it is one."""
    if encoding.doubtful:
        logger.warning(
            "%s: its encoding is not certain; it is read as %s, which gives %s. "
            "If that is wrong, set load_documents.encoding.",
            *(path, encoding.name, encoding.doubtful),
        )
    return encoding.name


def detect_encoding(stream: BinaryIO, declared: str | None = None) -> Encoding:
    """Find the encoding of a file, reading all of it in pieces.

    Raises
    ------
    UnreadableFile
        It looks binary, or in no encoding that can be told.
    """
    head = stream.read(_SAMPLE)
    for mark, name in _MARKS:
        if head.startswith(mark):
            return Encoding(name)
    has_null = 0 in head
    name = (has_null and _utf16_by_nulls(head)) or _utf16_by_characters(head)
    if name:
        return Encoding(name)
    if has_null or len(head.translate(None, _CONTROLS)) < 0.95 * len(head):
        raise UnreadableFile("looks binary; if it is text, set load_documents.encoding")
    stream.seek(0)
    invalid = _first_invalid(stream)
    if invalid is None:
        return Encoding("utf-8")
    start = max(0, invalid - _SAMPLE // 2)
    stream.seek(start)
    sample = _whole_lines(stream.read(_SAMPLE), invalid - start)
    if _is_damaged_utf8(sample):
        return Encoding("utf-8")
    known = _known(declared)
    return Encoding(known) if known else _legacy(sample)


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
    """Tell the byte order of UTF-16 by where the null bytes of its ASCII characters are.

    Empty if it is not UTF-16, or has little ASCII.
    """
    head = head[: len(head) // 2 * 2]
    first, second = head[::2].count(0), head[1::2].count(0)
    name = "utf-16-le" if second > first else "utf-16-be"
    if min(first, second) == 0 and max(first, second) > len(head) // 10:
        # The last pair may be the first half of a character.
        text = head[:-2].decode(name, "replace")
        if "\ufffd" not in text and not re.search(r"[\x00-\x08\x0e-\x1a\x1c-\x1f]", text):
            return name
    return ""


def _utf16_by_characters(head: bytes) -> str:
    """Tell UTF-16 in Chinese, Japanese or Korean by its characters; empty if it is not.

    In the other byte order, and read from anything else, they are scattered over
    all of Unicode.
    """
    if len(head) < _FEW_BYTES or _is_utf8(head):
        return ""
    found = []
    for name in ("utf-16-le", "utf-16-be"):
        # The last pair may be the first half of a character.
        text = head[: len(head) // 2 * 2 - 2].decode(name, "replace")
        n_usual = len(_USUAL.findall(text))
        if n_usual > 0.05 * len(text) and len(_EAST_ASIAN.findall(text)) > 0.97 * len(text):
            found.append(name)
    return found[0] if len(found) == 1 else ""


def _is_utf8(head: bytes) -> bool:
    """Tell whether bytes are UTF-8 without nulls, whose last character may be cut."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return 0 not in head


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


def _legacy(sample: bytes) -> Encoding:
    """Choose among the encodings from before Unicode."""
    from charset_normalizer import from_bytes

    misread = {name: count for name in _ALPHABETS if (count := _misread(sample, name)) is not None}
    latin = min(misread, key=misread.__getitem__, default=None)
    if latin is not None and not misread[latin] and _is_latin(sample):
        return _of_letters(latin, sample)
    matches = list(from_bytes(sample, cp_isolation=_CANDIDATES))
    if matches and matches[0].encoding not in _ALPHABETS:
        best = matches[0]
        has_equal = any(
            (match.chaos, match.coherence) == (best.chaos, best.coherence) for match in matches[1:]
        )
        is_guess = has_equal or best.chaos > _CHAOS or _is_latin(sample)
        return _guess(best.encoding, sample) if is_guess else Encoding(best.encoding)
    if latin is None:
        raise UnreadableFile("is in an unknown encoding: name it in load_documents.encoding")
    return _guess(latin, sample) if misread[latin] else _of_letters(latin, sample)


def _of_letters(name: str, sample: bytes) -> Encoding:
    """Take an encoding whose alphabet has all letters; a guess if they are too few to tell."""
    letters = set(_LETTER.findall(sample.decode(name).lower()))
    is_guess = name != "cp1252" and len(letters) < _FEW_LETTERS
    return _guess(name, sample) if is_guess else Encoding(name)


def _guess(name: str, sample: bytes) -> Encoding:
    words = dict.fromkeys(_WORD_BEYOND_ASCII.findall(sample.decode(name, "replace")))
    return Encoding(name, listed([repr(word[:40]) for word in words][:3]))


def _is_latin(sample: bytes) -> bool:
    """Tell whether most letters are ASCII."""
    return len(re.findall(rb"[A-Za-z]", sample)) > 2 * len(re.findall(rb"[\x80-\xff]", sample))


def _misread(sample: bytes, encoding: str) -> int | None:
    """Count what is wrong in a text by the best alphabet of an encoding; None if it cannot be.

    Wrong are characters that the alphabet lacks, and within a word quotation marks, and
    capitals beside a small letter.
    """
    try:
        text = sample.decode(encoding)
    except UnicodeDecodeError:
        return None
    odd = len(_IN_WORD.findall(text)) + sum(
        found[0].isupper()
        and (text[found.start() - 1].islower() or text[found.end() : found.end() + 1].islower())
        for found in _LETTER_WITHIN.finditer(text)
    )
    text = _ASCII.sub("", _LONE_SIGN.sub("", _PUNCTUATION.sub(" ", text))).lower()
    return odd + min(len(text.translate(_without(letters))) for letters in _ALPHABETS[encoding])


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

"""Damaged files of every format: each is read, or named with its reason, in time."""

import gzip
import io
import json
import random
import re
import time
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from graphrag_index.readers import READERS, ReadFailure, find_suffix, find_type, read_file
from graphrag_index.readers.parse_process import PICTURE_SUFFIXES
from graphrag_index.schema.settings.step_sections import LoadDocuments
from tests.fixtures.pdf import make_pdf
from tests.fixtures.sample_files import (
    FORMATS,
    SRT,
    VTT,
    make_cell,
    make_message,
    make_outlook,
    make_tar,
    make_zip,
    write_docx,
)

SENTENCE = "Anna Berg met Karl Ost in Riga. The port of Riga pays for Jörg Müller.\n"
UNKNOWN_ERROR = re.compile(r"cannot be read: \w+\(")
MAX_SECONDS = 30  # of one file, on a busy machine


def make_mail() -> bytes:
    message = make_message()
    message.add_alternative(f"<p>{SENTENCE}", subtype="html")
    message.add_attachment(
        make_zip({"a.txt": SENTENCE.encode()}), "application", "zip", filename="a.zip"
    )
    return message.as_bytes()


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Return a sound file of each suffix that a test can make."""
    openpyxl, pptx = pytest.importorskip("openpyxl"), pytest.importorskip("pptx")
    pytest.importorskip("kreuzberg")
    book, show, frame = openpyxl.Workbook(), pptx.Presentation(), io.BytesIO()
    book.active.append(["Anna Berg", "Riga"])
    show.slides.add_slide(show.slide_layouts[1]).shapes.title.text = "Riga"
    for one, stream in ((book, sheet := io.BytesIO()), (show, slides := io.BytesIO())):
        one.save(stream)
    pl.DataFrame({"text": [SENTENCE] * 9}).write_parquet(frame)
    write_docx(letter := tmp_path_factory.mktemp("sound") / "a.docx", SENTENCE)
    record = json.dumps({"text": SENTENCE})
    mail = make_mail()
    mailbox = b"From a@b Fri May  4 14:05:44 2001\n" + mail + b"\n"
    notebook = {"cells": [make_cell("markdown", SENTENCE), make_cell("code", "1", {"text": "1"})]}
    texts = {
        ".txt": SENTENCE,
        ".md": f"---\ntitle: a\n---\n# Riga\n{SENTENCE}",
        ".html": f"<html><title>a</title><table><tr><td>{SENTENCE}</table>",
        ".csv": f'n,text\n1,"{SENTENCE}"\n2,b\n',
        ".json": f"[{record}, {record}]",
        ".jsonl": f"{record}\n{record}\n",
        ".ipynb": json.dumps(notebook),
        ".py": f'"""{SENTENCE}"""\n\n\ndef a():\n    # Riga\n    return 1\n',
        ".srt": SRT,
        ".vtt": VTT,
    }
    return {name: text.encode() for name, text in texts.items()} | {
        ".parquet": frame.getvalue(),
        ".pdf": make_pdf([[(72, 720, "Anna Berg met Karl Ost.")], [(72, 700, "In Riga.")]]),
        ".docx": letter.read_bytes(),
        ".xlsx": sheet.getvalue(),
        ".pptx": slides.getvalue(),
        **{suffix: content for suffix, (content, _) in FORMATS.items()},
        ".eml": mail,
        ".mbox": mailbox * 3,
        ".msg": make_outlook({"a.txt": SENTENCE.encode() * 99}),
        ".zip": make_zip(
            {"a.txt": SENTENCE.encode(), "b.eml": mail, "c.docx": letter.read_bytes()}
        ),
        ".tar": make_tar({"a.txt": SENTENCE.encode(), "b.eml": mail}, "w"),
        ".tar.gz": make_tar({"a.txt": SENTENCE.encode(), "b.eml": mail}),
        ".gz": gzip.compress(mail),
    }


def damage(samples: dict[str, bytes], chance: random.Random) -> Iterator[tuple[str, str, bytes]]:
    """Yield (what was done, suffix, bytes) without end."""
    suffixes = sorted(samples)
    for turn in range(1_000):
        for suffix in chance.sample(suffixes, len(suffixes)):
            data = bytearray(samples[suffix])
            start = chance.randrange(len(data))
            match turn % 6:
                case 0:
                    yield "cut", suffix, bytes(data[:start])
                case 1:
                    yield "without a beginning", suffix, bytes(data[start:])
                case 2:
                    for _ in range(max(3, len(data) // 50)):
                        data[chance.randrange(len(data))] = chance.randrange(256)
                    yield "garbled", suffix, bytes(data)
                case 3:
                    other = chance.choice([one for one in suffixes if one != suffix])
                    yield f"as {other}", other, bytes(data)
                case 4:
                    data[start : start + 99] = bytes(99)
                    yield "with zeros", suffix, bytes(data)
                case 5:
                    yield "twice", suffix, bytes(data[start:] + data)


def read_damaged(folder: Path, samples: dict[str, bytes], n_files: int, seed: int) -> None:
    """Read damaged files; each yields documents, or says why not."""
    chance = random.Random(seed)
    for number, (what, suffix, data) in zip(range(n_files), damage(samples, chance), strict=False):
        path = folder / f"{number}{suffix}"
        path.write_bytes(data)
        begun = time.monotonic()
        found = list(read_file(path, path.name, LoadDocuments())) if find_type(path).suffix else []
        about = f"{path.name} {what}"
        assert time.monotonic() - begun < MAX_SECONDS, about
        assert found or find_type(path).noun, about
        for item in found:
            if isinstance(item, ReadFailure):
                assert item.reason.strip(), about
                # An error that no reader knows of is named too, but says little to a reader.
                assert not UNKNOWN_ERROR.match(item.reason), f"{about}: {item.reason}"
            else:
                assert item.text.strip(), about


def test_all_formats_are_among_the_samples(samples: dict[str, bytes]) -> None:
    same = {
        *(*PICTURE_SUFFIXES, ".markdown", ".htm", ".xhtml", ".tsv", ".ndjson", ".pyi"),
        *(".tgz", ".tbz2", ".txz", ".tar.bz2", ".tar.xz", ".bz2", ".xz"),
    }
    assert READERS.keys() - samples.keys() == same


def test_sound_files_are_read(samples: dict[str, bytes], tmp_path: Path) -> None:
    for suffix, data in samples.items():
        path = tmp_path / f"a{suffix}"
        path.write_bytes(data)
        assert find_suffix(path) == suffix
        found = list(read_file(path, path.name, LoadDocuments()))
        assert found, suffix
        assert not [item for item in found if isinstance(item, ReadFailure)], suffix


def test_damaged_files_are_read_or_named(samples: dict[str, bytes], tmp_path: Path) -> None:
    read_damaged(tmp_path, samples, n_files=330, seed=1)


@pytest.mark.slow
def test_many_damaged_files_are_read_or_named(samples: dict[str, bytes], tmp_path: Path) -> None:
    read_damaged(tmp_path, samples, n_files=5_000, seed=2)

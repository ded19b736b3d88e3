"""Make the static embedding table of the package: all-MiniLM-L6-v2 without its transformer.

    python tools/static_table.py --work FOLDER

Needs torch 2.13, wordfreq 3.1 and the model (`graphrag-index download-model`), on a Debian system
for `apt-get download`. Takes about 20 minutes of a processor core, nearly all of it for the
vectors that the table learns from; these are kept in FOLDER. It prints the sha256 of its result.
The same inputs give the same file on one machine; on another machine, torch may add in another
order, and single numbers may differ by one.

1. Every word piece goes through the model alone (model2vec, Tulkens & van Dongen, 2024). The
   vectors are whitened, and the rarer a piece is in general English, the higher its weight.
2. The table learns from the texts of `static_texts.py`: the cosines between the texts of a batch
   become those of the model. So thresholds on cosines hold for both. All pieces share a linear
   map; each piece has a correction of its own, held small, and a weight. A piece that is in no
   text keeps the vector of step 1 under the map.
3. The rows are rounded to 8 bits, with an integer as the scale of each row: sums are exact.
"""

import argparse
import hashlib
import json
import math
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
import wordfreq
from static_texts import cut_texts, fetch_packages
from tokenizers import Tokenizer

from graphrag_index.llm.local.local_models import load_embedding_model, model_folder

TARGET = Path(__file__).parents[1] / "graphrag_index/llm/local/static.safetensors"
MODEL = "all-MiniLM-L6-v2"
VERSION = "1"
DIMENSION = 256
PAD, UNK, CLS, SEP, MASK = 0, 100, 101, 102, 103

# Training. Texts are cut as the model cuts them, without its two special tokens.
MAX_PIECES = 254
EPOCHS = 4
BATCH_TEXTS = 256
LEARNING_RATE = 1e-3
WEIGHT_LEARNING_RATE = 1e-2
# Penalty for the corrections of the pieces in a batch, and for the changes of their weights.
PENALTY = 3e-3
# Weight of the squared differences between cosines, beside the divergence of their softmax.
SQUARED_WEIGHT = 10.0
TEMPERATURE = 0.05
# Share of the groups of texts that is only measured, not learned from.
HELD_OUT_SHARE = 0.03

# Texts whose vectors are stored in one file.
TEXTS_PER_FILE = 4_000
# The largest scale of a row.
MAX_SCALE = 60_000

Floats = npt.NDArray[np.floating]


def embed_pieces(n_pieces: int) -> Floats:
    """Return the vector of each word piece alone between [CLS] and [SEP]."""
    session = load_embedding_model(MODEL)._session  # type: ignore[attr-defined]
    pieces = np.arange(n_pieces)
    rows = np.stack([np.full(n_pieces, CLS), pieces, np.full(n_pieces, SEP)], axis=1)
    batches = [rows[start : start + 80] for start in range(0, n_pieces, 80)]
    return np.concatenate([session.run(None, {"word_pieces": batch})[0] for batch in batches])


def embed_texts(texts: Sequence[str], folder: Path) -> Floats:
    """Return the model's vectors of texts; vectors that are in the folder are read from it."""
    model = load_embedding_model(MODEL)
    folder.mkdir(parents=True, exist_ok=True)
    parts = []
    for start in range(0, len(texts), TEXTS_PER_FILE):
        part = texts[start : start + TEXTS_PER_FILE]
        path = folder / f"{hashlib.sha256(json.dumps(part).encode()).hexdigest()[:16]}.npy"
        if not path.exists():
            new = path.with_suffix(".new.npy")
            np.save(new, model.embed(part))
            new.rename(path)
        parts.append(np.load(path))
    return np.concatenate(parts)


def count_frequencies(tokenizer: Tokenizer) -> Floats:
    """Return the share of each word piece in general English."""
    words = wordfreq.get_frequency_dict("en")
    vocabulary = tokenizer.get_vocab()
    counts = np.zeros(len(vocabulary))
    cut = tokenizer.encode_batch_fast(list(words), add_special_tokens=False)
    for share, encoding in zip(words.values(), cut, strict=True):
        for piece in encoding.ids:
            counts[piece] += share
    for piece, number in vocabulary.items():
        # The list has numbers only by their count of digits, and no punctuation.
        if piece.isascii() and piece.isdigit() and len(piece) > 1:
            counts[number] = max(counts[number], wordfreq.word_frequency(piece, "en"))
        elif len(piece) == 1 and not piece.isalnum():
            counts[number] = max(counts[number], 0.01)
    return counts / counts.sum()


def whiten(vectors: Floats) -> Floats:
    """Give all principal directions but the last, which is empty, the same variance."""
    centred = vectors.astype(np.float64) - vectors.astype(np.float64).mean(axis=0)
    _, deviations, directions = np.linalg.svd(centred, full_matrices=False)
    deviations /= np.sqrt(len(centred))
    n_kept = centred.shape[1] - 1
    rows: Floats = (centred @ directions[:n_kept].T) / deviations[:n_kept]
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


class Table:
    """The rows of word pieces while they are learned: `start @ linear + corrections`, weighted."""

    def __init__(self, start: Floats, weights: Floats) -> None:
        self.start = torch.tensor(start, dtype=torch.float32)
        self.log_weights = torch.tensor(np.log(weights), dtype=torch.float32)
        self.linear = torch.nn.Parameter(torch.eye(start.shape[1], DIMENSION))
        self.corrections = torch.zeros(len(start), DIMENSION)
        self.weight_changes = torch.zeros(len(start))

    def rows(self) -> Floats:
        with torch.no_grad():
            rows = self.start @ self.linear + self.corrections
            return (rows * torch.exp(self.log_weights + self.weight_changes)[:, None]).numpy()


class RowAdam:
    """Adam (Kingma & Ba, 2015) that only updates the rows of a batch.

    The rows of a matrix share one second moment each.
    """

    def __init__(self, values: torch.Tensor) -> None:
        self.values = values
        self.first = torch.zeros_like(values)
        self.second = torch.zeros(len(values))
        self.steps = torch.zeros(len(values))

    def step(self, rows: torch.Tensor, gradient: torch.Tensor, rate: float) -> None:
        squares = gradient * gradient
        self.steps[rows] += 1
        self.first[rows] = 0.9 * self.first[rows] + 0.1 * gradient
        self.second[rows] = 0.99 * self.second[rows] + 0.01 * (
            squares.mean(1) if squares.dim() == 2 else squares
        )
        first = self.first[rows] / _as_column(1 - 0.9 ** self.steps[rows], gradient)
        second = (self.second[rows] / (1 - 0.99 ** self.steps[rows])).sqrt() + 1e-9
        self.values[rows] -= rate * first / _as_column(second, gradient)


def _as_column(values: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    return values[:, None] if like.dim() == 2 else values


def learn(
    table: Table, groups: Sequence[Sequence[str]], vectors: Floats, tokenizer: Tokenizer
) -> None:
    """Fit the cosines between texts to those of the model."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    order = np.random.default_rng(0)
    texts = [text for group in groups for text in group]
    tokenizer.enable_truncation(MAX_PIECES)
    pieces = [np.array(e.ids) for e in tokenizer.encode_batch_fast(texts, add_special_tokens=False)]
    stops = np.cumsum([len(group) for group in groups])
    wanted = torch.tensor(vectors)
    groups_per_batch = int(BATCH_TEXTS * len(groups) / len(texts))
    n_learned = int(len(groups) * (1 - HELD_OUT_SHARE))

    def batches(numbers: npt.NDArray[np.int64]) -> Iterator[npt.NDArray[np.int64]]:
        for start in range(0, len(numbers) - groups_per_batch + 1, groups_per_batch):
            chosen = numbers[start : start + groups_per_batch]
            yield np.concatenate(
                [np.arange(stops[n] - len(groups[n]), stops[n]) for n in chosen.tolist()]
            )

    def losses(batch: npt.NDArray[np.int64]) -> tuple[torch.Tensor, ...]:
        flat = torch.tensor(np.concatenate([pieces[text] for text in batch]))
        lengths = [len(pieces[text]) for text in batch]
        offsets = torch.tensor(np.concatenate([[0], np.cumsum(lengths)[:-1]]))
        used, places = torch.unique(flat, return_inverse=True)
        corrections = table.corrections[used].requires_grad_()
        changes = table.weight_changes[used].requires_grad_()
        rows = table.start[used] @ table.linear + corrections
        rows = rows * torch.exp(table.log_weights[used] + changes)[:, None]
        sums = torch.nn.functional.embedding_bag(places, rows, offsets, mode="sum")
        own = torch.nn.functional.normalize(sums, dim=1)
        found, target = own @ own.T, wanted[batch] @ wanted[batch].T
        itself = torch.eye(len(batch), dtype=torch.bool)
        squared = ((found - target)[~itself] ** 2).mean()
        likely = (target / TEMPERATURE).masked_fill(itself, -1e9)
        guess = (found / TEMPERATURE).masked_fill(itself, -1e9)
        gap = torch.log_softmax(likely, 1) - torch.log_softmax(guess, 1)
        divergence = (torch.softmax(likely, 1) * gap).sum(1).mean()
        return squared, divergence, used, corrections, changes

    shared = torch.optim.Adam([table.linear], lr=LEARNING_RATE)
    of_rows, of_weights = RowAdam(table.corrections), RowAdam(table.weight_changes)
    n_steps = EPOCHS * int(n_learned * len(texts) / len(groups) / BATCH_TEXTS)
    step = 0
    for epoch in range(EPOCHS):
        for batch in batches(order.permutation(n_learned)):
            decay = 0.5 * (1 + math.cos(math.pi * min(1, step / n_steps))) * 0.95 + 0.05
            rate = decay * min(1, (step + 1) / 20)
            shared.param_groups[0]["lr"] = LEARNING_RATE * rate
            squared, divergence, used, corrections, changes = losses(batch)
            loss = SQUARED_WEIGHT * squared + divergence
            loss = loss + PENALTY * (corrections**2).sum(1).mean()
            loss = loss + PENALTY * (changes**2).mean()
            shared.zero_grad()
            loss.backward()
            shared.step()
            with torch.no_grad():
                of_rows.step(used, corrections.grad, LEARNING_RATE * rate)
                of_weights.step(used, changes.grad, WEIGHT_LEARNING_RATE * rate)
            step += 1
        with torch.no_grad():
            held_out = np.arange(n_learned, len(groups))
            measured = np.array([[float(x) for x in losses(b)[:2]] for b in batches(held_out)])
        print(
            f"epoch {epoch + 1}: held out, squared difference of cosines "
            f"{measured[:, 0].mean():.5f}, divergence {measured[:, 1].mean():.4f}",
            flush=True,
        )


def write_table(rows: Floats, vocabulary: Sequence[str], path: Path) -> None:
    """Round the rows to 8 bits with integer scales, and write the safetensors file."""
    rows = rows.astype(np.float64)
    rows[[PAD, CLS, SEP, MASK]] = 0
    highest = np.abs(rows).max(axis=1)
    unit = highest.max() / 127 / MAX_SCALE
    scales = np.maximum(np.rint(highest / 127 / unit), highest > 0)
    rounded = np.rint(rows / np.maximum(scales, 1)[:, None] / unit)
    tensors = {
        "scales": ("U16", scales.astype("<u2")),
        "vectors": ("I8", np.clip(rounded, -127, 127).astype("<i1")),
        "vocabulary": ("U8", np.frombuffer("\n".join(vocabulary).encode(), "u1")),
    }
    header: dict[str, object] = {}
    data = b""
    for name, (kind, values) in tensors.items():
        place = [len(data), len(data) + values.nbytes]
        header[name] = {"dtype": kind, "shape": list(values.shape), "data_offsets": place}
        data += values.tobytes()
    header["__metadata__"] = {
        "name": "static",
        "version": VERSION,
        "dimension": str(rows.shape[1]),
        "source": f"sentence-transformers/{MODEL}",
        "license": "Apache-2.0",
        "sha256": hashlib.sha256(data).hexdigest(),
    }
    lines = json.dumps(header, ensure_ascii=False).encode()
    lines += b" " * (-len(lines) % 8)
    path.write_bytes(len(lines).to_bytes(8, "little") + lines + data)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--work", type=Path, required=True, help="folder for packages and vectors")
    parser.add_argument("--output", type=Path, default=TARGET)
    chosen = parser.parse_args()
    started = time.process_time()
    tokenizer = Tokenizer.from_file(str(model_folder() / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    by_number = {number: piece for piece, number in tokenizer.get_vocab().items()}
    vocabulary = [by_number[number] for number in range(len(by_number))]

    fetch_packages(chosen.work / "packages")
    groups = cut_texts(chosen.work / "packages")
    texts = [text for group in groups for text in group]
    print(f"{len(texts):,} texts in {len(groups):,} groups", flush=True)
    vectors = embed_texts(texts, chosen.work / "vectors")

    shares = count_frequencies(tokenizer)
    weights = np.clip(np.log(1 / np.maximum(shares, 1e-8)) - 4, 0.02, 12) / 12
    table = Table(whiten(embed_pieces(len(vocabulary))), weights)
    learn(table, groups, vectors, tokenizer)
    write_table(table.rows(), vocabulary, chosen.output)
    digest = hashlib.sha256(chosen.output.read_bytes()).hexdigest()
    print(f"{chosen.output}: sha256 {digest}, {time.process_time() - started:.0f} CPU s")


if __name__ == "__main__":
    main()

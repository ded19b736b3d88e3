"""Where a stream is written to, in tests."""


class Pieces:
    """A sink that keeps what is written."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.restarts = 0

    def write(self, piece: str) -> None:
        self.pieces.append(piece)

    def restart(self) -> None:
        self.pieces.clear()
        self.restarts += 1

    @property
    def text(self) -> str:
        return "".join(self.pieces)

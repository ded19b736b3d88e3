"""Make the pictures of docs/gallery from the sample: `python docs/make_gallery.py`, `make gallery`.

Needs the program chromium, as the tests of the explorer do.
"""

import base64
import io
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, expect, sync_playwright

import graphrag_query

REPOSITORY = Path(__file__).parents[1]
GALLERY = Path(__file__).parent / "gallery"
PERSON = "people/tom-crean.txt"
QUESTION = "How are Tom Crean and Frank Worsley connected?"
COLUMNS = 96  # of a terminal
# Characters of cursor movements that progress bars use: erase the line, one line up.
_MOVE = re.compile(r"\r\n|\n|\r|\x1b\[2K|\x1b\[1A|\x1b\[\?25[lh]")
# Quality of WebP, from 0 to 1.
QUALITY = 0.8


def ask(page: Page) -> None:
    page.get_by_label("Question").fill(QUESTION)
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Evidence of the answer")).to_be_visible()


def answer(page: Page) -> None:
    page.goto("/")
    ask(page)


def citation(page: Page) -> None:
    page.goto("/")
    ask(page)
    page.get_by_role("link", name="Citation 1:").first.click()
    expect(page.locator("mark").first).to_be_in_viewport()


def themes(page: Page) -> None:
    page.goto("/")
    expect(page.get_by_role("application")).to_have_attribute("data-areas", re.compile("[1-9]"))


def whole(page: Page) -> None:
    page.goto("/")
    page.get_by_label("Search", exact=True).select_option("global")
    page.get_by_label("Question").fill("How did scurvy affect the expeditions?")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Evidence of the answer")).to_be_visible()


def path(page: Page) -> None:
    page.goto("/")
    page.locator("[role=combobox]").first.focus()
    page.keyboard.type("tom crea")
    expect(page.get_by_role("option", name="Tom Crean").first).to_be_visible()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Path to …").click()
    page.keyboard.type("Roald Amund")
    page.get_by_role("option", name="Roald Amundsen").first.click()
    expect(page.get_by_text("Best path")).to_be_visible()


def versions(page: Page) -> None:
    page.goto("/#/sample?panel=versions&compare=1")
    expect(page.locator(".graph-view").nth(1)).to_be_visible()


def evaluation(page: Page) -> None:
    page.goto("/v1/indexes/sample/evaluations/questions/page")
    page.get_by_role("heading", name="Means").evaluate("heading => heading.scrollIntoView()")


# Name: how to get there, and whether the colours are dark.
PAGES: dict[str, tuple[Callable[[Page], None], bool]] = {
    "answer": (answer, False),
    "citation": (citation, False),
    "themes": (themes, False),
    "themes-dark": (themes, True),
    "whole": (whole, True),
    "path": (path, False),
    "versions": (versions, False),
    "evaluation": (evaluation, False),
}
COMMANDS = {
    "run": "graphrag-index run --root sample",
    "local": 'graphrag-query local "Who was Tom Crean?" --root sample',
    "quality": "graphrag-index evaluate graph --root sample",
}


def photograph(browser: Browser, url: str) -> None:
    for name, (go, is_dark) in PAGES.items():
        context = browser.new_context(
            base_url=url,
            viewport={"width": 1280, "height": 800},
            color_scheme="dark" if is_dark else "light",
            reduced_motion="reduce",
        )
        page = context.new_page()
        go(page)
        page.mouse.move(0, 0)
        page.wait_for_timeout(1500)  # The drawing comes to rest.
        save_webp(browser, page.screenshot(), GALLERY / f"{name}.webp")
        context.close()


def save_webp(browser: Browser, png: bytes, target: Path) -> None:
    """Let the browser write a picture as WebP, which is a third of its PNG."""
    page = browser.new_page()
    encoded = page.evaluate(
        """async ([png, quality]) => {
            const image = new Image();
            image.src = `data:image/png;base64,${png}`;
            await image.decode();
            const canvas = document.createElement("canvas");
            [canvas.width, canvas.height] = [image.width, image.height];
            canvas.getContext("2d").drawImage(image, 0, 0);
            return canvas.toDataURL("image/webp", quality).split(",")[1];
        }""",
        [base64.b64encode(png).decode(), QUALITY],
    )
    page.close()
    target.write_bytes(base64.b64decode(encoded))


def record(command: str, folder: Path) -> str:
    """Run a command in a terminal of its own, and return its last screen with colours."""
    inner, outer = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(COLUMNS), "TERM": "xterm-256color"}
    process = subprocess.Popen(
        command, shell=True, cwd=folder, env=environment, stdout=outer, stderr=outer
    )
    os.close(outer)
    written = b""
    while True:
        try:
            chunk = os.read(inner, 65536)
        except OSError:  # Linux: the other end is closed.
            break
        if not chunk:
            break
        written += chunk
    if process.wait():
        sys.exit(f"`{command}` failed:\n{written.decode()}")
    return last_screen(written.decode())


def last_screen(text: str) -> str:
    """Apply the cursor movements of progress bars, which rewrite whole lines."""
    lines, row = [""], 0
    for part in re.split(f"({_MOVE.pattern})", text):
        if part in ("\n", "\r\n"):
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif part == "\x1b[2K":
            lines[row] = ""
        elif part == "\x1b[1A":
            row = max(0, row - 1)
        elif not _MOVE.fullmatch(part):
            lines[row] += part
    return "\n".join(line.rstrip() for line in lines).rstrip()


def draw_terminal(command: str, screen: str, target: Path) -> None:
    """Write a screen as SVG, without the fonts that it would load from other hosts."""
    from rich.console import Console
    from rich.text import Text

    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    console.print(Text.from_ansi(f"$ {command}\n{screen}"))
    svg = console.export_svg(title=command, unique_id=target.stem)
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    target.write_text(svg.replace("Fira Code", "monospace"), encoding="utf-8")


@contextmanager
def serve(folder: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "graphrag_index", "serve", "--root", "sample", "--port", "0"]
    server = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert server.stdout
    try:
        yield re.search(r"http://[\d.:]+", server.stdout.readline())[0]  # type: ignore[index]
    finally:
        server.terminate()
        server.wait()


def graphrag_index(folder: Path, *arguments: str) -> None:
    command = [sys.executable, "-m", "graphrag_index", *arguments]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)


def make_project(folder: Path) -> dict[str, str]:
    """Index the sample in two versions, evaluate it, and return the screens of `COMMANDS`."""

    def screen(name: str) -> str:
        program, _, rest = COMMANDS[name].partition(" ")
        module = program.replace("-", "_")
        return record(f"{sys.executable} -m {module} {rest}", folder).replace(f"{folder}/", "")

    shutil.copytree(REPOSITORY / "input", folder / "documents")
    graphrag_index(folder, "init", "sample", "--input", "documents")
    document = folder / "documents" / PERSON
    text = document.read_text(encoding="utf-8")
    paragraphs = text.split("\n\n")
    document.write_text("\n\n".join(paragraphs[: len(paragraphs) // 2]), encoding="utf-8")
    screens = {"run": screen("run")}
    document.write_text(text, encoding="utf-8")
    graphrag_index(folder, "run", "--root", "sample", "--quiet")
    questions = ["questions.jsonl", "--root", "sample"]
    graphrag_index(folder, "evaluate", "make", "--to", *questions, "--n", "120")
    graphrag_index(folder, "evaluate", *questions, "--methods", "local,basic,global")
    return screens | {name: screen(name) for name in COMMANDS if name != "run"}


def main() -> None:
    chromium = shutil.which("chromium") or sys.exit("This needs the program chromium.")
    GALLERY.mkdir(exist_ok=True)
    expect.set_options(timeout=30_000)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for name, screen in make_project(folder).items():
            draw_terminal(COMMANDS[name], screen, GALLERY / f"{name}.svg")
        with graphrag_query.open(folder / "sample" / "output") as index:
            graph = index.neighbourhood("Tom Crean").graph
        (GALLERY / "neighbourhood.svg").write_text(graph._repr_svg_(), encoding="utf-8")
        with sync_playwright() as playwright, serve(folder) as url:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            photograph(browser, url)
            browser.close()


if __name__ == "__main__":
    main()

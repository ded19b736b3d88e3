"""Index and ask with a language model on your own machine, such as one that Ollama serves.

    ollama pull qwen3:8b
    python examples/local_model.py [--base-url URL] [--model NAME]

Any OpenAI-compatible server will do. The environment variables LOCAL_MODEL_URL and LOCAL_MODEL
set the defaults.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

OLLAMA = "http://localhost:11434/v1"
TEXT = """\
Ada Lovelace worked with Charles Babbage, who designed the Analytical Engine in London.
Luigi Menabrea described the Analytical Engine, and Ada Lovelace translated his account.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--base-url", default=os.environ.get("LOCAL_MODEL_URL", OLLAMA))
    parser.add_argument("--model", default=os.environ.get("LOCAL_MODEL", "qwen3:8b"))
    options = parser.parse_args()
    try:
        urllib.request.urlopen(f"{options.base_url}/models", timeout=10).close()
    except urllib.error.HTTPError:
        pass  # There is a server; the run reports its error.
    except OSError:
        sys.exit(
            f"No model server answers at {options.base_url}: start one, such as `ollama serve` "
            f"after `ollama pull {options.model}`, or name another with --base-url."
        )
    with tempfile.TemporaryDirectory() as folder:
        root, documents = Path(folder, "project"), Path(folder, "documents")
        documents.mkdir()
        (documents / "engine.txt").write_text(TEXT, encoding="utf-8")
        model = {"model": options.model, "base_url": options.base_url, "concurrency": 2}
        settings = ["workflow=standard", *(f"models.chat.{key}={model[key]}" for key in model)]
        overrides = [word for setting in settings for word in ("--set", setting)]
        for module, *arguments in (
            ("graphrag_index", "init", root, "--input", documents),
            ("graphrag_index", "run", "--root", root, *overrides),
            ("graphrag_query", "local", "Who was Ada Lovelace?", "--root", root, *overrides),
        ):
            command = [sys.executable, "-m", module, *map(str, arguments)]
            if code := subprocess.run(command, check=False).returncode:
                sys.exit(code)


if __name__ == "__main__":
    main()

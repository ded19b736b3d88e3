"""A small OpenAI-compatible server that answers from its input, and fails on request.

In a test: `with Server(faults=Faults(rate=0.3, kinds=["500", "hang"])) as server`, then a client
with `base_url=server.url`. As a process of its own: `python -m tests.model_server --help`.
"""

from tests.model_server.answers import answer_from_text
from tests.model_server.chat import ChatRequest
from tests.model_server.faults import KINDS, Faults
from tests.model_server.limits import Limits
from tests.model_server.request_log import counts, read_log
from tests.model_server.server import OTHER_HOST, Server

__all__ = [
    "KINDS",
    "OTHER_HOST",
    "ChatRequest",
    "Faults",
    "Limits",
    "Server",
    "answer_from_text",
    "counts",
    "read_log",
]

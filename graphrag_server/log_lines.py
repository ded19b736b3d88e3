"""The log of a server: one line of JSON for each record, on standard error."""

import json
import logging
from datetime import UTC, datetime

# Attributes that every record has; all others are fields of this program.
_USUAL = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonFormatter(logging.Formatter):
    """Formatter that writes a record, and its extra fields that are not None, as one line."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        fields = vars(record).items()
        line |= {name: value for name, value in fields if name not in _USUAL and value is not None}
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        # ASCII, so that no character of a client can change a terminal or begin a line.
        return json.dumps(line, default=str)


def start_log() -> None:
    """Write the log of all loggers to standard error; requests are logged at the level INFO."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("graphrag_server").setLevel(logging.INFO)

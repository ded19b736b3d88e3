/** Server-sent events of a request with a body or a key, which EventSource cannot send. */

export interface ServerEvent {
  /** The number of the event, from which a lost stream goes on; empty if it has none. */
  id: string;
  event: string;
  data: Record<string, unknown>;
}

/** Read the events of a reply as they arrive. A reply in JSON is one event, `answer`. */
export async function* readEvents(response: Response): AsyncGenerator<ServerEvent> {
  if (!response.headers.get("Content-Type")?.startsWith("text/event-stream")) {
    yield { id: "", event: "answer", data: (await response.json()) as Record<string, unknown> };
    return;
  }
  if (!response.body) return;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      // A chunk may end between the two characters of a line break.
      buffer = (buffer + value).replaceAll("\r\n", "\n");
      const events = buffer.split("\n\n");
      buffer = events.pop() ?? "";
      for (const text of events) {
        const event = parseEvent(text);
        if (event) yield event;
      }
    }
  } finally {
    await reader.cancel();
  }
}

/** Parse one event. Comments, which keep the connection open, have no data. */
function parseEvent(text: string): ServerEvent | null {
  let event = "message";
  let id = "";
  const data: string[] = [];
  for (const line of text.split("\n")) {
    const [, field, value = ""] = /^(\w+): ?(.*)$/s.exec(line) ?? [];
    if (field === "event") event = value;
    else if (field === "id") id = value;
    else if (field === "data") data.push(value);
  }
  if (!data.length) return null;
  return { id, event, data: JSON.parse(data.join("\n")) as Record<string, unknown> };
}

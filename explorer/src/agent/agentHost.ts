/** The program that shows the page inside a chat: messages by MCP Apps, JSON-RPC over postMessage. */

import { ApiError } from "../api";
import { texts } from "../texts";

const PROTOCOL = "2026-01-26";
// Pixels that the page asks for.
const HEIGHT = 620;

export interface ToolResult {
  content?: { type: string; text?: string }[];
  structuredContent?: Record<string, unknown>;
  isError?: boolean;
}
interface Message {
  jsonrpc?: string; id?: number | string; method?: string;
  params?: unknown; result?: unknown; error?: { message: string };
}
interface HostContext { theme?: "light" | "dark" }

export class AgentHost {
  private readonly waiting = new Map<number, (message: Message) => void>();
  private nextId = 1;

  /** `onResult` gets the result of the tool call that the chat shows with this page. */
  constructor(
    private readonly onResult: (result: ToolResult) => void,
    private readonly onContext: (context: HostContext) => void,
  ) {
    window.addEventListener("message", ({ source, data }: MessageEvent<Message>) => {
      if (source === window.parent && data?.jsonrpc === "2.0") this.receive(data);
    });
  }

  async start(): Promise<void> {
    const started = await this.request("ui/initialize", {
      protocolVersion: PROTOCOL, appCapabilities: {},
      appInfo: { name: "graphrag-explorer", version: "1" },
    }) as { hostContext?: HostContext };
    this.onContext(started.hostContext ?? {});
    this.post({ method: "ui/notifications/initialized", params: {} });
    this.post({ method: "ui/notifications/size-changed", params: { height: HEIGHT } });
  }

  /** Call a tool of the server that the page belongs to. */
  async call(name: string, args: Record<string, unknown>): Promise<Record<string, unknown>> {
    const result = await this.request("tools/call", { name, arguments: args }) as ToolResult;
    if (result.isError || !result.structuredContent) {
      throw new ApiError(0, "tool_failed", result.content?.[0]?.text ?? texts.errors.unexpected);
    }
    return result.structuredContent;
  }

  private request(method: string, params: unknown): Promise<unknown> {
    const id = this.nextId++;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, ({ result, error }) => {
        if (error) reject(new ApiError(0, "host_failed", error.message));
        else resolve(result);
      });
      this.post({ id, method, params });
    });
  }

  private receive(message: Message): void {
    const { id, method, params } = message;
    if (!method) {
      this.waiting.get(Number(id))?.(message);
      this.waiting.delete(Number(id));
    } else if (method === "ui/notifications/tool-result") this.onResult(params as ToolResult);
    else if (method === "ui/notifications/host-context-changed") this.onContext(params as HostContext);
    // The host asks whether the page is alive, and before it removes the page.
    else if (id !== undefined) this.post({ id, result: {} });
  }

  private post(message: Message): void {
    // The origin of the host is unknown. Nothing secret is sent.
    window.parent.postMessage({ jsonrpc: "2.0", ...message }, "*");
  }
}

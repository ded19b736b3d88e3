/** The calls of the HTTP API. */

import { ApiError, type IndexSummary, isNoServer, type Query } from "../api";
import { texts } from "../texts";

// Codes of errors of an index that cannot be opened.
const UNREADABLE: readonly string[] = ["no_index_yet", "table_error"];

const noServer = () => new ApiError(0, "no_server", texts.errors.noServer);

/** The calls of the HTTP API with the reader's key. */
export class Connection {
  /** Called when the server wants a key, or another key. */
  onUnauthorized: () => void = () => {};
  /** Called with the version of each reply that is not of an earlier version. */
  onVersion: (version: number) => void = () => {};
  /** Called after each request with whether the server answered. */
  onReach: (isReached: boolean) => void = () => {};
  /** Called when an index cannot be read, because it is damaged or gone. */
  onUnreadable: () => void = () => {};

  constructor(private readonly base: string, private readonly key: () => string) {}

  async fetch(path: string, options: RequestInit = {}): Promise<Response> {
    const headers = new Headers(options.headers);
    if (this.key()) headers.set("Authorization", `Bearer ${this.key()}`);
    return this.accept(path, await this.reach(fetch(this.base + path, { ...options, headers })));
  }

  /** Wait for the network. Its failures, which are of this type, become an error for the reader. */
  private async reach<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      this.onReach(false);
      throw noServer();
    }
  }

  /** Return a reply without an error. Throws ApiError. */
  private async accept(path: string, response: Response): Promise<Response> {
    const version = Number(response.headers.get("X-Index-Version"));
    if (version && !path.includes("as_of=")) this.onVersion(version);
    const problem = response.ok ? null : await readProblem(response);
    this.onReach(!isNoServer(problem));
    if (!problem) return response;
    if (problem.status === 401) this.onUnauthorized();
    if (UNREADABLE.includes(problem.code)) this.onUnreadable();
    throw problem;
  }

  /** Send a form, and report how many bytes of its body are sent; `fetch` cannot tell that. */
  async upload(path: string, body: FormData, onProgress: (sent: number) => void, signal: AbortSignal): Promise<Response> {
    const response = new Promise<Response>((resolve, reject) => {
      const request = new XMLHttpRequest();
      const abort = () => { request.abort(); reject(signal.reason as Error); };
      request.upload.onprogress = ({ loaded }) => onProgress(loaded);
      request.onload = () => resolve(new Response(request.responseText, { status: request.status }));
      // The type of error that `fetch` has for the network.
      request.onerror = () => reject(new TypeError("The connection failed."));
      request.onloadend = () => signal.removeEventListener("abort", abort);
      signal.addEventListener("abort", abort);
      request.open("POST", this.base + path);
      if (this.key()) request.setRequestHeader("Authorization", `Bearer ${this.key()}`);
      request.send(body);
    });
    return this.accept(path, await this.reach(response));
  }

  /** Find out whether the server still answers. */
  async look(signal?: AbortSignal): Promise<void> {
    await this.fetch("health", { signal: signal ?? null });
  }

  async get<T>(path: string, query: Query, signal: AbortSignal): Promise<T> {
    const response = await this.fetch(path + formatQuery(query), { signal });
    return this.reach(response.json() as Promise<T>);
  }

  async send<T>(method: string, path: string, body: unknown, signal?: AbortSignal): Promise<T> {
    const headers = { "Content-Type": "application/json" };
    const text = JSON.stringify(body);
    const response = await this.fetch(path, { method, headers, body: text, signal: signal ?? null });
    return this.reach(response.json() as Promise<T>);
  }

  async indexes(signal: AbortSignal): Promise<IndexSummary[]> {
    return (await this.get<{ indexes: IndexSummary[] }>("v1/indexes", {}, signal)).indexes;
  }
}

/** Return the path of the calls on an index. */
export const indexPath = (name: string) => `v1/indexes/${encodeURIComponent(name)}`;

export function formatQuery(query: Query): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (Array.isArray(value)) for (const item of value) parameters.append(name, item);
    else if (value !== null && value !== undefined && value !== "") parameters.set(name, String(value));
  }
  const text = parameters.toString();
  return text && `?${text}`;
}

/** Read the problem details of a failed request; a proxy may answer something else. */
async function readProblem(response: Response): Promise<ApiError> {
  const { status } = response;
  try {
    const { code, detail } = (await response.json()) as { code?: string; detail?: string };
    if (detail) return new ApiError(status, code ?? "", detail);
  } catch {
    // The body is not JSON: the status has to do.
  }
  // A proxy answers with these for a server that is gone; the server's own replies are JSON.
  if ([502, 503, 504].includes(status)) return noServer();
  return new ApiError(status, "", texts.errors.status(status));
}

/** The calls of the HTTP API for the care of an index: files, runs, names, health and evaluations. */

import { type Connection, indexPath } from "../served/Connection";
import { readEvents } from "../parts/readEvents";
import type { Decision, Health, InputFiles, Job, JobState, ListedEvaluation, Preview, Resolutions } from "./rows";
import { UploadQueue } from "./UploadQueue";

const ENDED: readonly JobState[] = ["failed", "cancelled", "done"];
// Milliseconds before a lost connection is tried again.
const PAUSE = 2000;

export const hasEnded = (job: Job) => ENDED.includes(job.state);

export class Management {
  readonly uploads = new UploadQueue((...sent) => this.upload(...sent));
  private readonly root: string;

  constructor(private readonly connection: Connection, index: string) {
    this.root = indexPath(index);
  }

  files(signal: AbortSignal): Promise<InputFiles> {
    return this.connection.get(`${this.root}/files`, {}, signal);
  }

  /** Store a file among the documents; without `replace`, a file of the same name is an error. */
  async upload(file: File, replace: boolean, onProgress: (sent: number) => void, signal: AbortSignal): Promise<void> {
    const body = new FormData();
    body.append("files", file);
    body.append("replace", String(replace));
    await this.connection.upload(`${this.root}/files`, body, onProgress, signal);
  }

  async remove(path: string): Promise<void> {
    const name = path.split("/").map(encodeURIComponent).join("/");
    await this.connection.fetch(`${this.root}/files/${name}`, { method: "DELETE" });
  }

  async jobs(signal: AbortSignal): Promise<Job[]> {
    return (await this.connection.get<{ jobs: Job[] }>(`${this.root}/jobs`, {}, signal)).jobs;
  }

  start(kind: Job["kind"], budget: number | null): Promise<Job> {
    return this.connection.send("POST", `${this.root}/jobs`, { kind, budget });
  }

  cancel(job: string): Promise<Job> {
    return this.connection.send("POST", `${this.root}/jobs/${job}/cancel`, {});
  }

  setBudget(job: string, budget: number): Promise<Job> {
    return this.connection.send("POST", `${this.root}/jobs/${job}/budget`, { budget });
  }

  /** Report each change of a job until the job has ended; a lost connection is tried again. */
  async watch(job: Job, onChange: (job: Job) => void, onLost: (error: Error | null) => void, signal: AbortSignal): Promise<void> {
    const path = `${this.root}/jobs/${job.id}`;
    let last = "";
    while (!signal.aborted) {
      try {
        const headers: HeadersInit = last ? { "Last-Event-ID": last } : {};
        const response = await this.connection.fetch(`${path}/events`, { headers, signal });
        onLost(null);
        for await (const { id, event, data } of readEvents(response)) {
          last = id || last;
          if (event === "stopping") break;
          // The message belongs to the state before, such as the limit at which the run stopped.
          const message = event === "state" ? "" : job.message;
          job = { ...job, message, ...data };
          onChange(job);
        }
        job = await this.connection.get<Job>(path, {}, signal);
        onChange(job);
        if (job.version) this.connection.onVersion(job.version);
        if (hasEnded(job)) return;
      } catch (error) {
        if (signal.aborted) return;
        onLost(error as Error);
      }
      await new Promise((resolve) => setTimeout(resolve, PAUSE));
    }
  }

  resolutions(limit: number, signal: AbortSignal): Promise<Resolutions> {
    return this.connection.get(`${this.root}/resolutions`, { limit }, signal);
  }

  preview(decision: Decision, signal: AbortSignal): Promise<Preview> {
    return this.connection.send("POST", `${this.root}/resolutions/preview`, decision, signal);
  }

  async record(decision: Decision): Promise<void> {
    await this.connection.send("POST", `${this.root}/resolutions`, decision);
  }

  undo(decision: Decision): Promise<void> {
    if (decision.kind === "split") return this.undoNames([decision.name]);
    return this.undoNames(decision.kind === "rename" ? [decision.name, decision.title] : decision.names);
  }

  /** Undo the decisions about two names, or the split of one name. */
  async undoNames(names: string[]): Promise<void> {
    const query = new URLSearchParams(names.map((name) => ["name", name]));
    await this.connection.fetch(`${this.root}/resolutions?${query}`, { method: "DELETE" });
  }

  health(version: number | null, signal: AbortSignal): Promise<Health> {
    return this.connection.get(`${this.root}/check`, { as_of: version }, signal);
  }

  async evaluations(signal: AbortSignal): Promise<ListedEvaluation[]> {
    const path = `${this.root}/evaluations`;
    return (await this.connection.get<{ evaluations: ListedEvaluation[] }>(path, {}, signal)).evaluations;
  }

  /** Keep a judgement of an answer, which evaluations read. */
  async judge(judgement: object): Promise<void> {
    await this.connection.send("POST", `${this.root}/judgements`, judgement);
  }

  /** Read the report of an evaluation: a page of its own. */
  async evaluationPage(name: string): Promise<Blob> {
    const path = `${this.root}/evaluations/${encodeURIComponent(name)}/page`;
    return (await this.connection.fetch(path)).blob();
  }
}

/** Rows of the care of an index: files, runs, names, health and evaluations. */

import type { Entity } from "../api";

/** A file that a run reads. `problem` says why the last run could not read the file. */
export interface InputFile { path: string; size: number; n_documents: number; problem: string }
/** A file that a run skips, or a folder with the number of its files. */
export interface SkippedFile { path: string; kind: string; reason: string; n_files: number }
/** The files that a run reads or skips, and the most bytes that a further file may have. */
export interface InputFiles { files: InputFile[]; skipped: SkippedFile[]; skipped_summary: string; max_bytes: number }
export type JobState =
  "queued" | "running" | "waiting_budget" | "failed" | "cancelled" | "done";
/** A run of the index. Costs are in dollars; null if the price of a model is unknown. */
export interface Job {
  id: string; kind: "run" | "retry"; state: JobState; budget: number | null; created: string;
  step: string | null; step_number: number; n_steps: number; unit: string | null;
  rows_done: number; rows_total: number | null; seconds_left: number | null;
  calls: number; cost: number | null;
  estimate: { requests: number; cost: number | null } | null;
  /** Number of requests without a valid reply. */
  quarantined: number;
  version: number | null; message: string;
}

export interface Finding { table: string; count: number; of: number; examples: string[]; means: string }
export interface Check {
  name: string; title: string; count: number;
  /** Number of rows that were checked; null if the index lacks the tables of the check. */
  of: number | null;
  limit: number; limit_is_share: boolean; failed: boolean; findings: Finding[];
}
export interface Level {
  level: number; communities: number; entities: number; smallest: number; median: number; largest: number;
}
export interface Health {
  failed: boolean; checks: Check[]; not_looked_at: string[]; rows: Record<string, number>;
  graph: {
    nodes: number; edges: number; average_degree: number; largest_degree: number; components: number;
    largest_component: number; isolated: number; modularity: number | null;
  } | null;
  levels: Level[];
  languages: { language: string | null; documents: number; text_units: number; tokens: number }[];
}

/** A mean with its confidence interval over `n` questions. */
export interface Interval { mean: number; low: number; high: number; n: number }
/** The main means of an evaluation, by system and measure. */
export interface EvaluationSummary {
  date: string; n_questions: number; systems: { name: string; index: string; version: number }[];
  means: Record<string, Record<string, Interval>>;
}
/** An evaluation; the summary is null if its file cannot be read, as the problem says. */
export interface ListedEvaluation { name: string; summary: EvaluationSummary | null; problem: string }

/** A decision of a person about names. */
export type Decision =
  | { kind: "merge"; title: string; names: string[] }
  | { kind: "never"; names: string[] }
  | { kind: "rename"; name: string; title: string }
  | { kind: "split"; name: string; parts: Part[] };
/** One of several things with the same name: that of some documents, or of all others. */
export interface Part { title: string; documents?: string[] }
/** What a decision would change in the index; `is_new` is false if it is recorded already. */
export interface Preview {
  is_new: boolean; entities: Entity[]; n_relationships: number; n_text_units: number; n_documents: number;
  parts: { title: string; n_text_units: number; n_documents: number }[];
}

/** Two names of the index that may mean the same thing. */
export interface DoubtfulPair {
  title: string; other: string; evidence: string[]; frequency: number; other_frequency: number;
}
/** The decisions of people, and what the index has resolved or doubts; the last two are cut. */
export interface Resolutions {
  titles: { name: string; title: string }[]; never: string[][]; split: { name: string }[];
  resolved: { title: string; resolved: string; decided_by: string }[]; n_resolved: number;
  doubtful: DoubtfulPair[]; n_doubtful: number;
}

/** The runs of the index: a run is started, watched, cancelled, and given a larger budget. */

import { useEffect, useState } from "preact/hooks";
import { Await, Failure, useAbortedEffect, useAction, useData, useLoaded, useManagement } from "../parts/useData";
import { texts } from "../texts";
import { hasEnded } from "./management";
import type { Job } from "./rows";

/** `onEnd` is called when a run has ended that was watched here. */
export function Runs({ onEnd }: { onEnd: () => void }) {
  const { summary } = useData();
  const manage = useManagement();
  const [jobs, setJobs] = useState<Job[]>();
  const [budget, setBudget] = useState("");
  const starting = useAction();
  const loaded = useLoaded((signal) => manage.jobs(signal), [summary.name]);
  useEffect(() => setJobs(loaded.value), [loaded.value]);
  const start = (kind: Job["kind"]) => starting.act(async () => {
    const job = await manage.start(kind, parseBudget(budget) ?? null);
    setJobs((before) => [job, ...(before ?? []).filter(({ id }) => id !== job.id)]);
  });
  const noteChange = (job: Job) =>
    setJobs((before) => before?.map((other) => (other.id === job.id ? job : other)));
  if (!jobs) return <Await loaded={loaded}>{() => null}</Await>;
  const last = jobs.find(hasEnded);
  const open = jobs.filter((job) => !hasEnded(job));
  const isBudgetValid = parseBudget(budget) !== undefined;
  return (
    <section class="runs" aria-label={texts.runs.label}>
      <div class="actions">
        <button type="button" class="primary" disabled={starting.isBusy || open.length > 0 || !isBudgetValid}
          onClick={() => start("run")}>
          {texts.runs.start}
        </button>
        {last && last.quarantined > 0 && open.length === 0 && (
          <button type="button" disabled={starting.isBusy} onClick={() => start("retry")}>
            {texts.runs.retry(last.quarantined)}
          </button>
        )}
      </div>
      {open.length === 0 && (
        <details>
          <summary class="muted">{texts.runs.limit}</summary>
          <BudgetField value={budget} onChange={setBudget} />
        </details>
      )}
      {starting.error !== null && <Failure error={starting.error} />}
      {(open.length ? open : last ? [last] : []).map((job) => (
        <JobView key={job.id} job={job} onChange={noteChange} onEnd={onEnd} />
      ))}
    </section>
  );
}

/** Return the number of dollars; null for an empty field, and undefined for an invalid one. */
function parseBudget(text: string): number | null | undefined {
  if (!text.trim()) return null;
  const value = Number(text.replace(",", "."));
  return Number.isFinite(value) && value >= 0 ? value : undefined;
}

function BudgetField({ value, onChange }: { value: string; onChange: (text: string) => void }) {
  return (
    <label class="field">
      <span>{texts.runs.budget}</span>
      <input value={value} inputMode="decimal" aria-invalid={parseBudget(value) === undefined}
        onInput={(event) => onChange(event.currentTarget.value)} />
    </label>
  );
}

interface JobViewProps { job: Job; onChange: (job: Job) => void; onEnd: () => void }

function JobView({ job, onChange, onEnd }: JobViewProps) {
  const manage = useManagement();
  const cancelling = useAction();
  const [lost, setLost] = useState<Error | null>(null);
  const isOpen = !hasEnded(job);
  useAbortedEffect((signal) => {
    if (isOpen) void manage.watch(job, onChange, setLost, signal).then(() => { if (!signal.aborted) onEnd(); });
  }, [job.id]);
  return (
    <div class={`job ${job.state}`}>
      <p class="job-state" role="status">
        <strong>{texts.runs.states[job.state]}</strong>
        {job.state === "done" && job.version !== null && ` · ${texts.version(job.version)}`}
        {job.state === "running" && job.step && ` · ${texts.runs.step(job.step, job.step_number, job.n_steps)}`}
      </p>
      {job.state === "running" && <Progress job={job} />}
      <Costs job={job} />
      {job.message && <p>{job.message}</p>}
      {lost && <Failure error={lost} />}
      {job.state === "waiting_budget" && <RaiseBudget job={job} onChange={onChange} />}
      {isOpen && (
        <button type="button" disabled={cancelling.isBusy} onClick={() => cancelling.act(async () => {
          const { state } = await manage.cancel(job.id);
          onChange({ ...job, state });
        })}>
          {texts.runs.cancel}
        </button>
      )}
      {cancelling.error !== null && <Failure error={cancelling.error} />}
    </div>
  );
}

function Progress({ job }: { job: Job }) {
  const { rows_done, rows_total, unit, seconds_left } = job;
  const parts = [
    rows_total ? texts.runs.rows(rows_done, rows_total, unit ?? "") : "",
    seconds_left ? texts.runs.left(seconds_left) : "",
  ];
  return (
    <>
      <progress aria-label={texts.runs.progress} max={rows_total || 1}
        // Without a value, the bar says that the length of the step is unknown.
        {...(rows_total ? { value: rows_done } : {})} />
      <p class="muted">{parts.filter(Boolean).join(" · ") || "\u00a0"}</p>
    </>
  );
}

/** The cost of a run that calls models, with the estimate from before the run. */
function Costs({ job }: { job: Job }) {
  const { calls, cost, estimate, budget } = job;
  const parts = [
    calls ? `${texts.ask.calls(calls)}, ${texts.ask.cost(cost)}` : "",
    estimate ? texts.runs.estimate(estimate.requests, estimate.cost) : "",
    budget === null ? "" : texts.runs.limited(budget),
  ].filter(Boolean);
  return parts.length ? <p class="muted">{parts.join(" · ")}</p> : null;
}

function RaiseBudget({ job, onChange }: { job: Job; onChange: (job: Job) => void }) {
  const manage = useManagement();
  const [text, setText] = useState(job.budget === null ? "" : String(job.budget * 2));
  const { act, isBusy, error } = useAction();
  const budget = parseBudget(text);
  const submit = (event: Event) => {
    event.preventDefault();
    if (typeof budget === "number") {
      void act(async () => onChange({ ...job, ...(await manage.setBudget(job.id, budget)) }));
    }
  };
  return (
    <form class="raise-budget" onSubmit={submit}>
      <BudgetField value={text} onChange={setText} />
      <button type="submit" class="primary" disabled={isBusy || typeof budget !== "number"}>{texts.runs.goOn}</button>
      {error !== null && <Failure error={error} />}
    </form>
  );
}

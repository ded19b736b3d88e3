/** The evaluations that the project of the index keeps, each with its means and its report. */

import { type Column, SortedTable } from "../parts/SortedTable";
import { Await, Failure, useAction, useData, useLoaded, useManagement } from "../parts/useData";
import { texts } from "../texts";
import type { EvaluationSummary, ListedEvaluation } from "./rows";

export function EvaluationsPanel() {
  const { summary } = useData();
  const manage = useManagement();
  const loaded = useLoaded((signal) => manage.evaluations(signal), [summary.name]);
  return (
    <div class="panel-body">
      <p class="muted">{texts.evaluations.explained}</p>
      <Await loaded={loaded}>
        {(evaluations) => evaluations.length
          ? evaluations.map((found) => <EvaluationView key={found.name} found={found} />)
          : <p>{texts.evaluations.nothing}</p>}
      </Await>
    </div>
  );
}

function EvaluationView({ found: { name, summary, problem } }: { found: ListedEvaluation }) {
  const manage = useManagement();
  const { act, isBusy, error } = useAction();
  const open = () => {
    // A tab that is opened after the reply would be blocked as a pop-up.
    const tab = window.open("", "_blank");
    void act(async () => {
      try {
        const page = await manage.evaluationPage(name);
        // The address stays valid until the explorer is closed, so that the tab can be reloaded.
        if (tab) tab.location.href = URL.createObjectURL(page);
      } catch (failure) {
        tab?.close();
        throw failure;
      }
    });
  };
  return (
    <section class="job evaluation" aria-label={name}>
      <h3>{name}</h3>
      {summary ? (
        <>
          <Means summary={summary} />
          <button type="button" disabled={isBusy} onClick={open}>{texts.evaluations.open}</button>
          {error !== null && <Failure error={error} />}
        </>
      ) : <p class="problem">{problem}</p>}
    </section>
  );
}

function Means({ summary }: { summary: EvaluationSummary }) {
  const { means } = summary;
  const measures = [...new Set(Object.values(means).flatMap((found) => Object.keys(found)))];
  const columns = Object.entries(means).map(([title, found]): Column<string> => ({
    title, value: (measure) => found[measure]?.mean ?? -Infinity,
    cell: (measure) => {
      const interval = found[measure];
      return interval ? <span title={texts.evaluations.interval(interval)}>{texts.evaluations.mean(interval.mean)}</span> : "–";
    },
  }));
  return (
    <SortedTable caption={texts.evaluations.measured(summary)} rows={measures} sortedBy={-1} keyOf={(measure) => measure}
      columns={[{ title: texts.evaluations.measure, value: (measure) => measure }, ...columns]} />
  );
}

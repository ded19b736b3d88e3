/** The evaluations that the project of the index keeps, each with its means and its report. */

import { Await, Failure } from "../parts/Loading";
import { useData } from "../parts/useData";
import { useLoaded } from "../parts/useLoaded";
import { texts } from "../texts";
import type { EvaluationSummary, ListedEvaluation } from "./rows";
import { useAction, useManagement } from "./useManagement";

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
          <p class="muted">{texts.evaluations.measured(summary)}</p>
          <Means summary={summary} />
          <button type="button" disabled={isBusy} onClick={open}>{texts.evaluations.open}</button>
          {error !== null && <Failure error={error} />}
        </>
      ) : <p class="problem">{problem}</p>}
    </section>
  );
}

function Means({ summary: { means } }: { summary: EvaluationSummary }) {
  const systems = Object.keys(means);
  const measures = [...new Set(Object.values(means).flatMap((found) => Object.keys(found)))];
  return (
    <div class="scroll-x" tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th scope="col">{texts.evaluations.measure}</th>
            {systems.map((system) => <th key={system} scope="col" class="number">{system}</th>)}
          </tr>
        </thead>
        <tbody>
          {measures.map((measure) => (
            <tr key={measure}>
              <th scope="row">{measure}</th>
              {systems.map((system) => {
                const interval = means[system]?.[measure];
                return (
                  <td key={system} class="number" title={interval && texts.evaluations.interval(interval)}>
                    {interval ? texts.evaluations.mean(interval.mean) : "–"}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

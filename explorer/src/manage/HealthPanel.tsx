/** The health of the index: the checks with what they found, and statistics. */

import { Line } from "../parts/Link";
import { List, Pairs, Section } from "../parts/PagedList";
import { type Column, SortedTable } from "../parts/SortedTable";
import { Await, Busy, useData, useLoaded, useManagement } from "../parts/useData";
import { useAddress } from "../state";
import { texts } from "../texts";
import type { Check, Health, Level } from "./rows";

export function HealthPanel() {
  const { summary } = useData();
  const { address } = useAddress();
  const manage = useManagement();
  const loaded = useLoaded((signal) => manage.health(address.version, signal), [summary.name, summary.version, address.version]);
  return (
    <div class="panel-body">
      <p class="muted">{texts.health.explained}</p>
      {loaded.loading ? <Busy label={texts.health.checking} />
        : <Await loaded={loaded}>{(health) => <HealthView health={health} />}</Await>}
    </div>
  );
}

function HealthView({ health }: { health: Health }) {
  const { checks, not_looked_at } = health;
  const failed = checks.filter((check) => check.failed);
  const noted = checks.filter((check) => !check.failed && check.count > 0);
  const passed = checks.filter((check) => check.of !== null && check.count === 0);
  return (
    <>
      <p class={failed.length ? "failure" : "passed"} role="status">
        <strong>{texts.health.outcome(failed.length, noted.length)}</strong>
      </p>
      {[...failed, ...noted].map((check) => <CheckView key={check.name} check={check} />)}
      {passed.length > 0 && (
        <details>
          <summary>{texts.health.passed(passed.length)}</summary>
          <List rows={passed}>{({ title, of }) => <Line name={title} note={texts.health.noneOf(of ?? 0)} />}</List>
        </details>
      )}
      {not_looked_at.length > 0 && (
        <details>
          <summary>{texts.health.notLookedAt}</summary>
          {not_looked_at.map((note) => <p key={note} class="muted">{note}</p>)}
        </details>
      )}
      <Statistics health={health} />
    </>
  );
}

function CheckView({ check }: { check: Check }) {
  const { title, count, of, limit, limit_is_share, failed, findings } = check;
  return (
    <section class={`check-found ${failed ? "failed" : ""}`} aria-label={title}>
      <h4>{title} <span class="count">{texts.countOf(count, of ?? 0)}</span></h4>
      {failed && <p class="muted">{texts.health.limit(limit, limit_is_share)}</p>}
      {findings.map(({ table, means, examples }) => (
        <div key={table}>
          <p>{means}</p>
          <ul class="examples">{examples.map((example) => <li key={example} dir="auto">{example}</li>)}</ul>
        </div>
      ))}
    </section>
  );
}

const LEVEL_COLUMNS: Column<Level>[] = [
  { title: texts.health.levelColumns[0]!, value: ({ level }) => String(level) },
  { title: texts.health.levelColumns[1]!, value: ({ communities }) => communities },
  { title: texts.health.levelColumns[2]!, value: ({ largest }) => largest, cell: ({ smallest, largest }) => texts.health.range(smallest, largest) },
  { title: texts.health.levelColumns[3]!, value: ({ median }) => median },
];

function Statistics({ health }: { health: Health }) {
  const { rows, graph, levels, languages } = health;
  const named: [string, string][] = Object.entries(rows).map(([name, count]) =>
    [texts.health.table(name), texts.number(count)],
  );
  return (
    <>
      <Section title={texts.health.rows}><Pairs pairs={named} /></Section>
      {graph && <Section title={texts.health.graph}><Pairs pairs={texts.health.graphPairs(graph)} /></Section>}
      {levels.length > 0 && (
        <SortedTable caption={texts.health.levels} rows={levels} columns={LEVEL_COLUMNS} sortedBy={-1} keyOf={({ level }) => level} />
      )}
      {languages.length > 0 && (
        <Section title={texts.health.languages}>
          <Pairs pairs={languages.map(({ language, documents }) =>
            [language || texts.health.unknown, texts.documents.held(documents)],
          )} />
        </Section>
      )}
    </>
  );
}

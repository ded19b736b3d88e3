/** Filters by type, document, date and metadata. They apply to questions, lists and the graph. */

import { useState } from "preact/hooks";
import type { FilterChoices } from "../api";
import { Remove } from "../parts/Link";
import { useData, useLoaded } from "../parts/useData";
import { type Filters, hasFilters, NO_FILTERS, useAddress } from "../state";
import { texts } from "../texts";
import { Timeline } from "./Timeline";

/** A condition on documents, such as `path=letters/*`. */
interface Condition { column: string; pattern: string }

export function FilterPanel() {
  const { address, go } = useAddress();
  const { filters } = address;
  const change = (part: Partial<Filters>) => go({ filters: { ...filters, ...part } });
  return (
    <div class="panel-body filters">
      <p class="muted">{texts.filters.explained}</p>
      <TypeChoice types={filters.types} onChange={(types) => change({ types })} />
      <fieldset>
        <legend>{texts.filters.dates}</legend>
        <Timeline />
        <div class="pair">
          <DateField label={texts.filters.since} value={filters.since} onChange={(since) => change({ since })} />
          <DateField label={texts.filters.until} value={filters.until} onChange={(until) => change({ until })} />
        </div>
      </fieldset>
      <Conditions documents={filters.documents} onChange={(documents) => change({ documents })} />
      <button type="button" disabled={!hasFilters(filters)} onClick={() => change(NO_FILTERS)}>
        {texts.filters.clear}
      </button>
    </div>
  );
}

function TypeChoice({ types, onChange }: { types: string[]; onChange: (types: string[]) => void }) {
  const counts = useFilterChoices()?.entity_types ?? {};
  const shown = [...new Set([...types, ...Object.keys(counts)])].filter(Boolean);
  if (!shown.length) return null;
  return (
    <fieldset>
      <legend>{texts.filters.types}</legend>
      <div class="checks">
        {shown.map((type) => (
          <label key={type} class="check">
            <input type="checkbox" checked={types.includes(type)}
              onChange={({ currentTarget }) => onChange(
                currentTarget.checked ? [...types, type] : types.filter((other) => other !== type),
              )} />
            <span dir="auto">{type}</span>
            {counts[type] ? <span class="muted">{texts.number(counts[type])}</span> : null}
          </label>
        ))}
      </div>
    </fieldset>
  );
}

function useFilterChoices(): FilterChoices | undefined {
  const { data, summary } = useData();
  return useLoaded((signal) => data.filterChoices(signal), [summary.name]).value;
}

interface DateFieldProps { label: string; value: string; onChange: (date: string) => void }

/** A year, a month or a day. The field of the browser for dates wants a whole day. */
function DateField({ label, value, onChange }: DateFieldProps) {
  return (
    <label class="field">
      <span>{label}</span>
      <input key={value} defaultValue={value} placeholder={texts.filters.dateForm} inputMode="numeric" pattern="\d{4}(-\d\d(-\d\d)?)?"
        onChange={({ currentTarget }) => { if (currentTarget.checkValidity()) onChange(currentTarget.value); }} />
    </label>
  );
}

interface ConditionsProps { documents: Filters["documents"]; onChange: (documents: Filters["documents"]) => void }

function Conditions({ documents, onChange }: ConditionsProps) {
  const conditions = Object.entries(documents).flatMap(([column, patterns]) =>
    patterns.map((pattern) => ({ column, pattern })),
  );
  const save = (changed: Condition[]) => {
    const grouped: Filters["documents"] = {};
    for (const { column, pattern } of changed) (grouped[column] ??= []).push(pattern);
    onChange(grouped);
  };
  return (
    <fieldset>
      <legend>{texts.filters.documents}</legend>
      <ul class="chips">
        {conditions.map((condition, at) => (
          <li key={`${condition.column}=${condition.pattern}`}>
            <button type="button" class="chip removable" onClick={() => save(conditions.filter((_, other) => other !== at))}>
              <span dir="auto">{condition.column} = {condition.pattern}</span><Remove />
            </button>
          </li>
        ))}
      </ul>
      <NewCondition onAdd={(condition) => save([...conditions, condition])} />
    </fieldset>
  );
}

function NewCondition({ onAdd }: { onAdd: (condition: Condition) => void }) {
  const [column, setColumn] = useState("path");
  const [pattern, setPattern] = useState("");
  const columns = useFilterChoices()?.document_columns ?? [];
  const submit = (event: Event) => {
    event.preventDefault();
    if (!column.trim() || !pattern.trim()) return;
    onAdd({ column: column.trim(), pattern: pattern.trim() });
    setPattern("");
  };
  return (
    <form class="condition" onSubmit={submit}>
      <input value={column} list="filter-columns" aria-label={texts.filters.column}
        onInput={(event) => setColumn(event.currentTarget.value)} />
      <datalist id="filter-columns">
        {columns.map((name) => <option key={name} value={name} />)}
      </datalist>
      <input value={pattern} placeholder={texts.filters.patternForm} aria-label={texts.filters.pattern}
        onInput={(event) => setPattern(event.currentTarget.value)} />
      <button type="submit">{texts.filters.add}</button>
    </form>
  );
}

/** One line on the filters that are set, with a button that removes them. */
export function FilterNotice() {
  const { address, go } = useAddress();
  const { filters } = address;
  if (!hasFilters(filters)) return null;
  const { types, documents, since, until } = filters;
  const conditions = Object.entries(documents).map(([column, patterns]) => `${column} = ${patterns.join(" | ")}`);
  const dates = since || until ? [texts.filters.between(since, until)] : [];
  return (
    <p class="filter-notice">
      <span dir="auto">{texts.filters.only} {[...types, ...conditions, ...dates].join(" · ")}</span>
      <button type="button" class="plain" onClick={() => go({ filters: NO_FILTERS })}>{texts.filters.clear}</button>
    </p>
  );
}

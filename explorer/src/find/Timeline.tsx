/** A timeline of documents, and of the mentions of the selected entity, that sets the filters by date. */

import type { Timeline as Line } from "../api";
import { useData, useLoaded } from "../parts/useData";
import { type Filters, useAddress } from "../state";
import { texts } from "../texts";

/** The timeline; nothing if no document has a date. */
export function Timeline() {
  const { data, summary } = useData();
  const { address: { filters, selection, version }, go } = useAddress();
  const entity = selection?.kind === "entity" ? selection.number : null;
  const line = useLoaded(
    async (signal) => await data.timeline?.(entity, filters, signal), [summary.name, version, entity, filters.documents],
  ).value;
  return line?.periods.length ? (
    <Bars {...line} names={entity === null ? ["documents"] : ["documents", "mentions"]} filters={filters}
      onChange={(since, until) => go({ filters: { ...filters, since, until } }, true)} />
  ) : null;
}

interface BarsProps extends Line {
  names: readonly ("documents" | "mentions")[];
  filters: Filters;
  onChange: (since: string, until: string) => void;
}

const HEIGHT = 40;

function Bars({ periods, n_undated, names, filters, onChange }: BarsProps) {
  const last = periods.length - 1;
  const [from, to] = findChosen(periods, filters);
  const choose = (one: number, other: number) => {
    const [start, end] = [Math.min(one, other), Math.max(one, other)];
    if (start === 0 && end === last) onChange("", "");
    else onChange(periods[start]!.since, periods[end]!.until);
  };
  // Each series has its own scale: an entity may be named in many passages of few documents.
  const scales = names.map((name) => HEIGHT / Math.max(1, ...periods.map((period) => period[name])));
  const width = 0.9 / names.length;
  const end = (name: "since" | "until", value: number, other: number) => (
    <input type="range" min={0} max={last} value={value} aria-label={texts.timeline[name]} aria-valuetext={periods[value]![name]}
      onInput={({ currentTarget }) => choose(Number(currentTarget.value), other)} />
  );
  return (
    <div class="timeline" role="group" aria-label={texts.timeline.label}>
      <svg viewBox={`0 0 ${periods.length} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
        {periods.map((period, at) => (
          <g key={at} data-out={at < from || at > to} onClick={() => choose(at, at)}>
            <title>{[texts.timeline.period(period.since, period.until), ...names.map((name) => texts.timeline[name](period[name]))].join(", ")}</title>
            <rect x={at} width={1} height={HEIGHT} fill="transparent" />
            {names.map((name, nth) => (
              <rect key={name} class={name} x={at + 0.05 + nth * width} width={width} y={HEIGHT - scales[nth]! * period[name]} height={scales[nth]! * period[name]} />
            ))}
          </g>
        ))}
      </svg>
      {last > 0 && <div>{end("since", from, to)}{end("until", to, from)}</div>}
      <p class="muted" role="status">
        <strong>{texts.timeline.period(periods[from]!.since, periods[to]!.until)}</strong>{" "}
        {names.map((name) => (
          <span key={name} class={name}>
            {texts.timeline[name](periods.slice(from, to + 1).reduce((sum, period) => sum + period[name], 0))}
          </span>
        ))}
        {n_undated > 0 && texts.timeline.undated(n_undated)}
      </p>
    </div>
  );
}

/** Return the positions of the first and the last period that the filters keep. */
function findChosen(periods: Line["periods"], { since, until }: Filters): [number, number] {
  // A date of a filter may be longer than that of a period, or shorter: "~" is after all that may follow it.
  const kept = periods.flatMap((period, at) => (
    `${period.until}~` >= since && (!until || period.since <= `${until}~`) ? [at] : []
  ));
  return [kept[0] ?? 0, kept.at(-1) ?? 0];
}

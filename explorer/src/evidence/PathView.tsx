/** The best connections of two entities, with a sentence for each step. */

import { useEffect } from "preact/hooks";
import type { Paths } from "../api";
import { EntityLink, RelationshipLink } from "../parts/Link";
import { Await } from "../parts/Loading";
import { useData } from "../parts/useData";
import { NO_HIGHLIGHT, useHighlight } from "../parts/useHighlight";
import { useLoaded } from "../parts/useLoaded";
import { texts } from "../texts";
import { Section } from "./Section";

export function PathView({ from, to }: { from: number; to: number }) {
  const { data } = useData();
  const { keep } = useHighlight();
  const loaded = useLoaded(
    async (signal) => {
      const found = await data.paths(from, to, signal);
      const ends = await Promise.all([from, to].map((number) => data.row("entities", number, signal)));
      return { ...found, name: texts.ends(ends[0]!.title, ends[1]!.title) };
    },
    [from, to],
  );
  const { value } = loaded;
  useEffect(() => {
    const best = value?.paths[0];
    if (!best) return;
    keep({ entities: best.entities, relationships: best.relationships, communities: [] });
    return () => keep(NO_HIGHLIGHT);
  }, [value]);
  return (
    <Await loaded={loaded}>
      {(paths) => (
        <article>
          <h2 dir="auto">{paths.name}</h2>
          {!paths.paths.length && <p class="muted">{texts.path.none}</p>}
          {paths.paths.map((path, at) => <Steps key={at} path={path} rank={at + 1} paths={paths} />)}
        </article>
      )}
    </Await>
  );
}

interface StepsProps { path: Paths["paths"][number]; rank: number; paths: Paths }

function Steps({ path, rank, paths }: StepsProps) {
  const titles = new Map(paths.entities.map(({ number, title }) => [number, title]));
  const relationships = new Map(paths.relationships.map((row) => [row.number, row]));
  return (
    <Section title={texts.path.rank(rank, path.relationships.length)}>
      <ol class="steps">
        {path.entities.map((number, at) => {
          const step = at > 0 ? relationships.get(path.relationships[at - 1]!) : undefined;
          return (
            <li key={number}>
              {step && <RelationshipLink relationship={step} from={path.entities[at - 1]!} />}
              {(at === 0 || !step) && <EntityLink entity={{ number, title: titles.get(number) ?? "" }} />}
            </li>
          );
        })}
      </ol>
    </Section>
  );
}

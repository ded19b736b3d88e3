/** The best connections of two entities, with a sentence for each step. */

import type { Paths } from "../api";
import { EntityLink, RelationshipLink } from "../parts/Link";
import { Section } from "../parts/PagedList";
import { Await, useData, useLoaded } from "../parts/useData";
import { useLighting } from "../state";
import { texts } from "../texts";

export function PathView({ from, to }: { from: number; to: number }) {
  const { data } = useData();
  const loaded = useLoaded(
    async (signal) => {
      const found = await data.paths(from, to, signal);
      const ends = await Promise.all([from, to].map((number) => data.row("entities", number, signal)));
      return { ...found, name: texts.ends(ends[0]!.title, ends[1]!.title) };
    },
    [from, to],
  );
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
  // The graph draws the path that is pointed at; else the best one.
  const lighting = useLighting({ entities: path.entities, relationships: path.relationships });
  const titles = new Map(paths.entities.map(({ number, title }) => [number, title]));
  const relationships = new Map(paths.relationships.map((row) => [row.number, row]));
  return (
    <div class="path" {...lighting}><Section title={texts.path.rank(rank, path.relationships.length)}>
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
    </Section></div>
  );
}

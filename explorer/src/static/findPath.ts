/** The best path between two entities: few relationships, and of these the strong ones. */

interface Link { number: number; source: number; target: number; weight: number }
interface Step { cost: number; link: Link; before: number }

/** Return the path of the lowest cost by Dijkstra's algorithm; null if none connects the two. */
export function findPath(links: readonly Link[], from: number, to: number) {
  const around = new Map<number, Link[]>();
  for (const link of links) {
    for (const end of [link.source, link.target]) around.set(end, [...(around.get(end) ?? []), link]);
  }
  const steps = new Map<number, Step>();
  const open = new Map([[from, 0]]);
  const done = new Set<number>();
  while (open.size && !done.has(to)) {
    const [entity, cost] = [...open].reduce((best, next) => (next[1] < best[1] ? next : best));
    open.delete(entity);
    done.add(entity);
    for (const link of around.get(entity) ?? []) {
      const other = link.source === entity ? link.target : link.source;
      const total = cost + 1 + 1 / (1 + link.weight);
      if (done.has(other) || total >= (open.get(other) ?? Infinity)) continue;
      open.set(other, total);
      steps.set(other, { cost: total, link, before: entity });
    }
  }
  if (from === to || !done.has(to)) return null;
  const entities = [to];
  const relationships: number[] = [];
  for (let at = to; at !== from; at = entities[0]!) {
    const { link, before } = steps.get(at)!;
    entities.unshift(before);
    relationships.unshift(link.number);
  }
  return { entities, relationships, cost: steps.get(to)!.cost };
}

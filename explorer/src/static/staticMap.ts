/** Parts of the map from the rows of a static page. */

import { chooseTypeHues } from "../graph/appearance";
import { makeEntityPart, type MapPart, type Place, placesOf, ROOT } from "../graph/mapPart";
import type { Disc } from "../graph/scene";
import type { Rows } from "./indexPart";

export class StaticMap {
  private readonly communities: ReadonlyMap<number, Rows["communities"][number]>;
  private readonly entities: ReadonlyMap<number, Rows["entities"][number]>;

  constructor(private readonly rows: Rows, private readonly version: number) {
    this.communities = new Map(rows.communities.map((row) => [row.community, row]));
    this.entities = new Map(rows.entities.map((row) => [row.number, row]));
  }

  readPart(community: number): MapPart {
    const children = this.rows.communities.filter(({ parent }) => parent === community);
    if (children.length) return this.communityPart(community, children);
    const members = this.rows.entities.filter((row) => row.community === community);
    return makeEntityPart(this.version, community, members, this.rows.relationships);
  }

  placeEntities(numbers: Iterable<number>): Place[] {
    return [...numbers].flatMap((number) => {
      const entity = this.entities.get(number);
      if (!entity) return [];
      const disc = this.disc(entity.community);
      const { title, type } = entity;
      return [{ number, title, type, x: disc.x + disc.radius * entity.x, y: disc.y + disc.radius * entity.y, radius: 0 }];
    });
  }

  placeCommunities(numbers: readonly number[]): Place[] {
    return numbers.filter((number) => this.communities.has(number))
      .map((number) => ({ number, title: "", type: "", ...this.disc(number) }));
  }

  /** Return the disc of a community in the unit disc of the whole map. */
  private disc(community: number): Disc {
    const row = this.communities.get(community);
    if (!row) return { x: 0, y: 0, radius: 1 };
    const outer = this.disc(row.parent);
    return { x: outer.x + outer.radius * row.x, y: outer.y + outer.radius * row.y, radius: outer.radius * row.radius };
  }

  private communityPart(community: number, children: Rows["communities"]): MapPart {
    const position = new Map(children.map((row, at) => [row.community, at]));
    const childOf = (entity: number) => {
      let number = this.entities.get(entity)?.community ?? ROOT;
      while (number !== ROOT && !position.has(number)) number = this.communities.get(number)?.parent ?? ROOT;
      return position.get(number);
    };
    const weights = new Map<string, number>();
    for (const { source, target, weight } of this.rows.relationships) {
      const [one, other] = [childOf(source), childOf(target)];
      if (one === undefined || other === undefined || one === other) continue;
      const pair = `${Math.min(one, other)} ${Math.max(one, other)}`;
      weights.set(pair, (weights.get(pair) ?? 0) + weight);
    }
    const links = [...weights].sort(([, one], [, other]) => other - one);
    const ends = links.map(([pair]) => pair.split(" ").map(Number));
    const types = [...chooseTypeHues(this.countTypes()).keys()];
    const typeCounts = new Int32Array(children.length * (types.length + 1));
    for (const { number, type } of this.rows.entities) {
      const child = childOf(number);
      const at = types.indexOf(type);
      if (child !== undefined) typeCounts[child * (types.length + 1) + (at < 0 ? types.length : at)]! += 1;
    }
    return {
      version: this.version, community, kind: "communities", title: children.map(({ title }) => title), type: [], types, typeCounts,
      leftOut: 0, number: Int32Array.from(children, (row) => row.community),
      size: Int32Array.from(children, ({ size }) => size), children: new Int32Array(children.length),
      ...placesOf(children), radius: Float32Array.from(children, ({ radius }) => radius),
      source: Int32Array.from(ends, ([one]) => one!), target: Int32Array.from(ends, ([, other]) => other!),
      weight: Float32Array.from(links, ([, weight]) => weight),
      relationship: new Int32Array(), stated: new Uint8Array(),
    };
  }

  /** Count the entities of each type. */
  countTypes(): Record<string, number> {
    const counts: Record<string, number> = {};
    for (const { type } of this.rows.entities) if (type) counts[type] = (counts[type] ?? 0) + 1;
    return counts;
  }
}

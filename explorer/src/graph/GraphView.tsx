/** The graph as a drawing or as a table: communities open into their insides as one zooms in. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { CameraState } from "sigma/types";
import { Menu } from "../parts/Menu";
import { useAbortedEffect, useLoaded } from "../parts/useData";
import { isInGraph } from "../state";
import { texts } from "../texts";
import { chooseTypeHues, NO_EMPHASIS } from "./appearance";
import type { DrawnGraph } from "./drawn";
import { DrawnTable } from "./DrawnTable";
import { type Export, EXPORTS, exportView } from "./exportView";
import { countTypes, GraphLegend, type LegendEntry, listChanges, listTypes, writeSigns } from "./GraphLegend";
import { WHOLE } from "./GraphLoader";
import { emphasizeArranged, findDisc, readEmphasis } from "./readEmphasis";
import { boundsOf } from "./scene";
import {
  arrangePaths, arrangeRings, chooseShown, type Nearby, readNearby, readPaths, type ShownSurroundings,
} from "./surroundings";
import { SurroundingsBar, SurroundingsLegend } from "./SurroundingsBar";
import { type Graph, type GraphViewProps, useGraph } from "./useGraph";

export function GraphView(props: GraphViewProps) {
  const { dataKey, mode, changes, colouredByType, hrefOf, selection } = props;
  const container = useRef<HTMLDivElement>(null);
  const { graph, drawn, hovered, status, setStatus, failure } = useGraph(container, props);
  const { surroundings, isLeft } = useSurroundings(props, setStatus);
  const typeHues = useTypeHues(props, drawn, surroundings !== null);
  const emphasis = useEmphasis(graph, props, surroundings);
  const [kept, keepTypes] = useState<ReadonlySet<string> | null>(null);
  const [pointed, pointAtTypes] = useState<ReadonlySet<string> | null>(null);
  const litTypes = typeHues ? pointed ?? kept : null;
  useEffect(() => { if (!typeHues) keepTypes(null); }, [!typeHues, dataKey]);
  const shown = useMemo(
    () => (litTypes ? { ...NO_EMPHASIS, types: litTypes, selected: emphasis.selected } : emphasis), [emphasis, litTypes],
  );
  useEffect(() => {
    if (!graph) return;
    Object.assign(graph.content, { emphasis: shown, changes, typeHues, areasByType: colouredByType });
    graph.camera.update();
  }, [graph, shown, changes, typeHues, colouredByType]);
  useArrangement(graph, props, surroundings);
  useMovingView(graph, props, isLeft);
  useMovingToPlaces(graph, props);
  useEffect(() => keepTypes(null), [selection?.kind, selection?.number]);

  const showsTable = mode === "table" || Boolean(failure);
  const countsInside = Boolean(graph?.content.showsTypes);
  const isBlank = graph?.content.drawn.communities.length && !drawn.entities.length && drawn.communities.every(({ isOpen }) => isOpen);
  const entries = changes ? listChanges(changes) : typeHues ? listTypes(countTypes(drawn, countsInside), typeHues) : [];
  return (
    <div class={`graph-view ${showsTable ? "as-table" : ""}`} data-communities={drawn.communities.length}
      data-entities={drawn.entities.length} data-lines={drawn.links.length + drawn.relationships.length}>
      {surroundings && <SurroundingsBar {...surroundings} />}
      <div class="graph-stage">
        <div class="graph-canvas" ref={container} tabIndex={showsTable ? -1 : 0} role="application"
          aria-label={texts.graph.explained} onKeyDown={(event) => { if (graph) moveWithKeys(graph, event); }}
          data-areas={drawn.communities.filter(({ isOpen }) => !isOpen).length} data-entities={drawn.entities.length} />
        {graph && <GraphButtons graph={graph} drawn={drawn} entries={entries} element={container.current!} onStatus={setStatus} />}
        {failure && <p class="notice">{failure}</p>}
        {showsTable && graph && (
          <DrawnTable drawn={drawn} emphasis={shown} changes={changes} around={listAround(graph, drawn)} hrefOf={hrefOf}
            onMove={(disc) => graph.camera.moveTo(disc)} />
        )}
        <p class="graph-status" role="status">{hovered ?? (status || (isBlank ? texts.graph.blank : props.highlight.filtered))}</p>
      </div>
      <GraphLegend entries={entries} byType={Boolean(typeHues)} litTypes={kept} onPoint={pointAtTypes} onKeep={keepTypes}>
        {surroundings?.around && typeHues && <SurroundingsLegend {...surroundings} hues={typeHues} onPoint={pointAtTypes} />}
      </GraphLegend>
    </div>
  );
}

/**
 * Load what is near a thing, or the paths between two; null: the map is shown, or nothing is loaded yet.
 * `isLeft`: what is selected lies elsewhere, so the map is shown again.
 */
function useSurroundings(
  { data, dataKey, around, path, selection, onLeave }: GraphViewProps, onStatus: (status: string) => void,
): { surroundings: ShownSurroundings | null; isLeft: boolean } {
  const { kind, number, pinned } = around ?? {};
  const loaded = useLoaded(
    async (signal) => (around ? readNearby(data, around, signal) : path && readPaths(data, path, signal)),
    [dataKey, kind, number, pinned, around ? null : path],
  );
  // What is pinned is loaded again; the picture before stays until it is here.
  const before = useRef<{ key: string; nearby: Nearby } | null>(null);
  const key = JSON.stringify([dataKey, kind, number, around ? null : path]);
  if (loaded.value) before.current = { key, nearby: loaded.value };
  const nearby = loaded.value ?? (before.current?.key === key ? before.current.nearby : null);
  const selected = selection?.kind === "entity" ? selection.number : null;
  // A community, and an entity that is elsewhere, are shown on the map.
  const isLeft = Boolean(around ?? path) && (selection?.kind === "community" || loaded.error !== null
    || Boolean(selected !== null && nearby && !nearby.entities.some((entity) => entity.number === selected)));
  useEffect(() => {
    if (loaded.error) onStatus(loaded.error.message);
    if (isLeft) onLeave();
  }, [isLeft]);
  const surroundings = useMemo(() => {
    if (!nearby || !(around ?? path) || isLeft) return null;
    if (!around) return { nearby, around, shown: new Set(nearby.order), arrange: arrangePaths(nearby) };
    const shown = chooseShown(nearby, around, selected);
    return { nearby, around, shown, arrange: arrangeRings(nearby, shown, selected) };
  }, [nearby, isLeft, JSON.stringify([around, path, selected])]);
  return { surroundings, isLeft };
}

/** Show what surrounds a thing in place of the map; the map comes back as it was left. */
function useArrangement(graph: Graph | null, { data }: GraphViewProps, surroundings: ShownSurroundings | null): void {
  const left = useRef<CameraState | null>(null);
  const arrange = surroundings?.arrange ?? null;
  const key = surroundings && surroundings.nearby.title;
  useEffect(() => {
    if (!graph || graph.content.arrange === arrange) return;
    const { camera, content, loader, renderer } = graph;
    if (!content.arrange) left.current = content.scene.parts.size ? renderer?.camera ?? null : null;
    content.arrange = arrange;
    camera.update();
    if (arrange) return;
    if (renderer && left.current) renderer.camera = left.current;
    else showWhole(graph);
    loader.follow(data);
  }, [graph, arrange]);
  useEffect(() => { if (graph && key !== null) graph.camera.moveTo(WHOLE, true); }, [graph, key]);
}

/** Return the hues of types, those with the most entities in the index first; null: no type has one. */
function useTypeHues({ data, dataKey, colouredByType, changes }: GraphViewProps, drawn: DrawnGraph, isArranged: boolean) {
  const isUsed = (colouredByType || isArranged || drawn.entities.some(({ community }) => community !== null)) && !changes;
  const loaded = useLoaded(async (signal) => (isUsed ? (await data.filterChoices(signal)).entity_types : {}), [dataKey, isUsed]);
  // The types of an index that does not count them are those that are drawn.
  const counts = isUsed ? (Object.keys(loaded.value ?? {}).length ? loaded.value! : countTypes(drawn, false)) : null;
  const key = JSON.stringify(counts);
  return useMemo(() => counts && chooseTypeHues(counts), [key]);
}

/** Load what is selected and lit; the last emphasis stays until the new one is here. */
function useEmphasis(
  graph: Graph | null, { data, dataKey, selection, highlight }: GraphViewProps, surroundings: ShownSurroundings | null,
) {
  const [emphasis, setEmphasis] = useState(NO_EMPHASIS);
  const arranged = useMemo(
    () => surroundings && emphasizeArranged(surroundings, selection, highlight), [surroundings, selection, highlight],
  );
  useAbortedEffect((signal) => {
    if (!graph || surroundings) return;
    readEmphasis(data, selection, highlight, signal).then((found) => {
      if (signal.aborted) return;
      graph.content.lit = found.lit;
      setEmphasis(found.emphasis);
    }).catch(() => {
      if (signal.aborted) return;
      graph.content.lit = { places: [], links: [] };
      setEmphasis(NO_EMPHASIS);
    });
  }, [graph, JSON.stringify([selection?.kind, selection?.number, highlight, dataKey, !surroundings])]);
  return arranged ?? emphasis;
}

/** Move the view to what has been selected elsewhere on the page. */
function useMovingView(graph: Graph | null, { data, dataKey, selection, around, path }: GraphViewProps, isLeft: boolean): void {
  useAbortedEffect((signal) => {
    if (!graph || !selection || (!isLeft && (around ?? path))) return;
    findDisc(data, selection, signal).then((disc) => {
      if (disc && !signal.aborted) graph.camera.moveTo(disc);
    }).catch(() => {});
  }, [graph, selection?.kind, selection?.number, dataKey, isLeft]);
}

// Rows of a kind whose places decide what the view shows, and the radius of a lone entity on the map.
const MAX_PLACES = 200;
const LONE_RADIUS = 0.15;

/** Move the view to what has changed, and to the ends of a relationship or the evidence of an answer if they are out of sight. */
function useMovingToPlaces(graph: Graph | null, props: GraphViewProps): void {
  const { data, dataKey, changes, showsChanges, selection, around, path, evidence } = props;
  const links = selection?.kind === "relationship" ? [selection.number] : [];
  const { entities, communities } = isInGraph(selection) || !changes ? evidence
    : { entities: showsChanges ? [...changes.entities.keys()] : [], communities: [] };
  const wanted = [entities, communities, links].map((numbers) => numbers.slice(0, MAX_PLACES)) as [number[], number[], number[]];
  useAbortedEffect((signal) => {
    if (!graph || around || path || !wanted.some((numbers) => numbers.length)) return;
    data.places(...wanted, signal).then((places) => {
      const discs = [...places.entities.map((place) => ({ ...place, radius: 0 })), ...places.communities];
      if (signal.aborted || !discs.length) return;
      const { x, y, radius, halfHeight } = boundsOf(discs);
      const view = graph.camera.view();
      const isInSight = Math.abs(x - view.x) + radius < view.halfWidth && Math.abs(y - view.y) + halfHeight < view.halfHeight;
      if (isInSight && !changes) return;
      const grow = (half: number) => Math.max(LONE_RADIUS, 1.2 * half);
      graph.camera.moveTo({ x, y, radius: grow(radius), halfHeight: grow(halfHeight) });
    }).catch(() => {});
  }, [graph, dataKey, JSON.stringify(wanted)]);
}

function showWhole({ camera, content: { arrange, scene } }: Graph): void {
  camera.moveTo(arrange ? WHOLE : scene.whole());
}

/** List the whole graph, and the opened communities around the middle of the view. */
function listAround({ camera, content }: Graph, { communities }: DrawnGraph) {
  const { scene } = content;
  const { x, y } = camera.view();
  const around = communities.filter((area) => area.isOpen && Math.hypot(area.x - x, area.y - y) < area.radius)
    .sort((one, other) => one.depth - other.depth).map((area) => ({ title: area.title, disc: area }));
  return content.arrange ? [] : [{ title: texts.drawn.whole, disc: scene.whole() }, ...around];
}

function moveWithKeys(graph: Graph, event: KeyboardEvent): void {
  const { camera, renderer } = graph;
  const move: Record<string, () => void> = {
    "+": () => camera.zoom(1.5), "=": () => camera.zoom(1.5), "-": () => camera.zoom(1 / 1.5), "0": () => showWhole(graph),
    Enter: () => renderer?.openNearest(), Backspace: () => renderer?.leaveInnermost(),
    ArrowLeft: () => camera.pan(-0.2, 0), ArrowRight: () => camera.pan(0.2, 0),
    ArrowUp: () => camera.pan(0, -0.2), ArrowDown: () => camera.pan(0, 0.2),
  };
  const action = move[event.key];
  if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  action();
}

interface GraphButtonsProps {
  graph: Graph;
  drawn: DrawnGraph;
  entries: readonly LegendEntry[];
  element: Element;
  onStatus: (status: string) => void;
}

function GraphButtons({ graph, drawn, entries, element, onStatus }: GraphButtonsProps) {
  const { camera, renderer } = graph;
  const save = (form: Export) => {
    const signs = writeSigns(entries, drawn, element);
    const pictures = renderer && { writeSvg: () => renderer.writeSvg(signs), writePng: () => renderer.writePng(signs) };
    exportView({ drawn, ...pictures }, form).then(() => onStatus(""), (error: unknown) => onStatus(String(error)));
  };
  return (
    <div class="graph-buttons" role="group" aria-label={texts.graph.view}>
      <button type="button" aria-label={texts.graph.zoomIn} onClick={() => camera.zoom(1.6)}>+</button>
      <button type="button" aria-label={texts.graph.zoomOut} onClick={() => camera.zoom(1 / 1.6)}>−</button>
      <button type="button" aria-label={texts.graph.whole} onClick={() => showWhole(graph)}>⤢</button>
      <Menu class="save-menu" label={texts.graph.save.label} button="⤓">
        {(renderer ? EXPORTS : EXPORTS.slice(2)).map((form) => <button key={form} type="button" onClick={() => save(form)}>{texts.graph.save[form]}</button>)}
      </Menu>
    </div>
  );
}

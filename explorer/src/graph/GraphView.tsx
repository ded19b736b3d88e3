/** The drawing of the graph: communities open into their children and entities as one zooms in. */

import { useEffect, useRef, useState } from "preact/hooks";
import type { IndexData } from "../api";
import type { Highlight } from "../parts/useHighlight";
import type { Selection } from "../state";
import { texts } from "../texts";
import { type Export, EXPORTS, exportView } from "./exportView";
import type { Changes } from "./drawing";
import { ROOT } from "./mapPart";
import { type Emphasis, NO_EMPHASIS, Renderer } from "./renderer";
import { type Disc, Scene, type View } from "./scene";

const MAX_KEPT_PARTS = 400;
const MAX_LIT = 200;
const WHOLE: Disc = { x: 0, y: 0, radius: 1 };

interface GraphViewProps {
  data: IndexData;
  /** Changes when other data is shown, such as an earlier version. */
  dataKey: string;
  selection: Selection | null;
  highlight: Highlight;
  /** The only community to show; null: all. */
  only: number | null;
  /** Whether a path between two entities is lit. */
  showsPath: boolean;
  /** What differs from another version; null without a comparison. */
  changes: Changes | null;
  onSelect(selection: Selection): void;
  /** Called if the browser cannot draw the graph. */
  onFailure(message: string): void;
}

export function GraphView(
  { data, dataKey, selection, highlight, only, showsPath, changes, onSelect, onFailure }: GraphViewProps,
) {
  const container = useRef<HTMLDivElement>(null);
  const renderer = useRef<Renderer | null>(null);
  const scene = useRef(new Scene(ROOT));
  const [hovered, setHovered] = useState<string | null>(null);
  const [status, setStatus] = useState("");
  const loading = useRef(new Map<number, AbortController>());
  const handlers = useRef({ onSelect, onFailure });
  handlers.current = { onSelect, onFailure };

  const load = (community: number, current: Scene) => {
    if (loading.current.has(community)) return;
    const stop = new AbortController();
    loading.current.set(community, stop);
    data.mapPart(community, stop.signal).then((part) => {
      if (scene.current !== current) return;
      current.add(part);
      current.forget(MAX_KEPT_PARTS);
      renderer.current?.update();
      setStatus(part.leftOut ? texts.graph.leftOut(part.leftOut) : "");
    }).catch((error: unknown) => {
      if (!stop.signal.aborted) setStatus(error instanceof Error ? error.message : String(error));
    }).finally(() => loading.current.delete(community));
  };

  const follow = (view: View) => {
    const current = scene.current;
    const before = current.openParts().length;
    current.follow(view).slice(0, 4).forEach((community) => load(community, current));
    if (current.openParts().length !== before) renderer.current?.update();
  };

  useEffect(() => {
    let frame = 0;
    try {
      renderer.current = new Renderer(container.current!, scene.current, {
        onEntity: (number) => handlers.current.onSelect({ kind: "entity", number }),
        onCommunity: (number) => handlers.current.onSelect({ kind: "community", number }),
        onView: (view) => {
          cancelAnimationFrame(frame);
          frame = requestAnimationFrame(() => followRef.current(view));
        },
        onHover: setHovered,
      });
    } catch (error) {
      handlers.current.onFailure(texts.graph.noDrawing(error instanceof Error ? error.message : ""));
      return;
    }
    const theme = new MutationObserver(() => renderer.current?.setTheme());
    theme.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const changed = () => renderer.current?.setTheme();
    dark.addEventListener("change", changed);
    return () => {
      cancelAnimationFrame(frame);
      theme.disconnect();
      dark.removeEventListener("change", changed);
      renderer.current?.close();
      renderer.current = null;
    };
  }, []);
  const followRef = useRef(follow);
  followRef.current = follow;

  // The whole map, or one community alone.
  useEffect(() => {
    const stop = new AbortController();
    const root = only ?? ROOT;
    const begin = (disc: Disc) => {
      if (stop.signal.aborted || !renderer.current) return;
      scene.current = new Scene(root, disc);
      renderer.current.setScene(scene.current);
      renderer.current.moveTo(disc, true);
      load(root, scene.current);
    };
    if (root === ROOT) begin(WHOLE);
    else {
      data.places([], [root], [], stop.signal)
        .then(({ communities }) => begin(communities[0] ?? WHOLE))
        .catch((error: unknown) => { if (!stop.signal.aborted) setStatus(String(error)); });
    }
    return () => {
      stop.abort();
      for (const controller of loading.current.values()) controller.abort();
      loading.current.clear();
    };
  }, [dataKey, only]);

  useEffect(() => renderer.current?.setChanges(changes), [changes]);

  // What is selected and lit.
  const key = JSON.stringify([selection?.kind, selection?.number, highlight, dataKey]);
  useEffect(() => {
    const stop = new AbortController();
    readEmphasis(data, selection, highlight, stop.signal).then((emphasis) => {
      if (!stop.signal.aborted) renderer.current?.setEmphasis(emphasis);
    }).catch(() => renderer.current?.setEmphasis(NO_EMPHASIS));
    return () => stop.abort();
  }, [key]);

  // The view moves to what has been selected elsewhere on the page.
  const selected = JSON.stringify([selection?.kind, selection?.number]);
  useEffect(() => {
    if (!selection) {
      // The two ends of a path may be far from what was shown before.
      if (showsPath) renderer.current?.moveTo(scene.current.disc(scene.current.root));
      return;
    }
    const stop = new AbortController();
    moveToSelection(data, selection, stop.signal).then((disc) => {
      if (disc && !stop.signal.aborted) renderer.current?.moveTo(disc);
    }).catch(() => {});
    return () => stop.abort();
  }, [selected, dataKey, showsPath]);

  const onKeyDown = (event: KeyboardEvent) => {
    const move: Record<string, () => void> = {
      "+": () => renderer.current?.zoom(1.5), "=": () => renderer.current?.zoom(1.5),
      "-": () => renderer.current?.zoom(1 / 1.5), "0": () => renderer.current?.moveTo(scene.current.disc(scene.current.root)),
      Enter: () => renderer.current?.openNearest(), Backspace: () => renderer.current?.leaveInnermost(),
      ArrowLeft: () => renderer.current?.pan(-0.2, 0), ArrowRight: () => renderer.current?.pan(0.2, 0),
      ArrowUp: () => renderer.current?.pan(0, -0.2), ArrowDown: () => renderer.current?.pan(0, 0.2),
    };
    const action = move[event.key];
    if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    action();
  };

  return (
    <div class="graph-view">
      <div class="graph-canvas" ref={container} tabIndex={0} role="application"
        aria-label={texts.graph.explained} onKeyDown={onKeyDown} />
      <div class="graph-buttons" role="group" aria-label={texts.graph.view}>
        <button type="button" aria-label={texts.graph.zoomIn} onClick={() => renderer.current?.zoom(1.6)}>+</button>
        <button type="button" aria-label={texts.graph.zoomOut} onClick={() => renderer.current?.zoom(1 / 1.6)}>−</button>
        <button type="button" aria-label={texts.graph.whole}
          onClick={() => renderer.current?.moveTo(scene.current.disc(scene.current.root))}>⤢</button>
        <SaveMenu onChoose={(form) => {
          if (!renderer.current) return;
          exportView(renderer.current, form).then(
            (isSaved) => setStatus(isSaved ? "" : texts.graph.nothingToSave),
            (error: unknown) => setStatus(String(error)),
          );
        }} />
      </div>
      <p class="graph-status" role="status">{hovered ?? status}</p>
      <p class="graph-legend">
        {changes && (["added", "changed"] as const).map((kind) => (
          <span key={kind}><span class={`change-dot ${kind}`} aria-hidden="true" />{texts.versions.kinds[kind]}</span>
        ))}
        <span><span class="stated-line" aria-hidden="true" />{texts.graph.stated}</span>
        <span><span class="counted-line" aria-hidden="true" />{texts.graph.counted}</span>
      </p>
    </div>
  );
}

function SaveMenu({ onChoose }: { onChoose: (form: Export) => void }) {
  const menu = useRef<HTMLDetailsElement>(null);
  const close = () => {
    menu.current?.removeAttribute("open");
    menu.current?.querySelector("summary")?.focus();
  };
  return (
    <details class="save-menu" ref={menu} onKeyDown={(event) => { if (event.key === "Escape") close(); }}>
      <summary class="button" aria-label={texts.graph.save.label} title={texts.graph.save.label}>⤓</summary>
      <div class="menu-list">
        {EXPORTS.map((form) => (
          <button key={form} type="button" onClick={() => { close(); onChoose(form); }}>{texts.graph.save[form]}</button>
        ))}
      </div>
    </details>
  );
}

async function readEmphasis(
  data: IndexData, selection: Selection | null, highlight: Highlight, signal: AbortSignal,
): Promise<Emphasis> {
  const entities = new Set(highlight.entities.slice(0, MAX_LIT));
  const relationships = new Set(highlight.relationships.slice(0, MAX_LIT));
  const communities = new Set(highlight.communities);
  if (selection?.kind === "relationship") relationships.add(selection.number);
  if (selection?.kind === "entity") {
    entities.add(selection.number);
    if (!highlight.entities.length && !highlight.relationships.length) {
      const { items } = await data.relationshipsOf(selection.number, null, signal);
      for (const { number } of items) relationships.add(number);
    }
  }
  const selected = selection && { kind: selection.kind, number: selection.number };
  if (!entities.size && !relationships.size) return { ...NO_EMPHASIS, communities, selected };
  const places = await data.places([...entities], [], [...relationships], signal);
  for (const { number } of places.entities) entities.add(number);
  return { entities, relationships, communities, selected, places: places.entities, links: places.relationships };
}

/** Return the disc to which the view moves for a selection, if it has a place. */
async function moveToSelection(data: IndexData, selection: Selection, signal: AbortSignal): Promise<Disc | null> {
  if (selection.kind === "community") {
    return (await data.places([], [selection.number], [], signal)).communities[0] ?? null;
  }
  if (selection.kind !== "entity") return null;
  const { communities } = await data.row("entities", selection.number, signal);
  const deepest = communities.at(-1);
  return deepest ? (await data.places([], [deepest.community], [], signal)).communities[0] ?? null : null;
}

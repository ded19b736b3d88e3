/** The life of a picture of the graph: its content, its view, and the loading of what it needs. */

import type { RefObject } from "preact";
import { useContext, useEffect, useRef, useState } from "preact/hooks";
import type { IndexData } from "../api";
import { ServerReturns } from "../parts/useData";
import {
  type Address, type Filters, hasFilters, type Highlight, type Mode, type Selection, type Surroundings,
} from "../state";
import { texts } from "../texts";
import type { Changes } from "./appearance";
import { type GraphCamera, GraphContent, PlainCamera } from "./content";
import { type DrawnGraph, NOTHING_DRAWN } from "./drawn";
import { GraphLoader } from "./GraphLoader";
import type { LinkedViews } from "./LinkedViews";
import { Renderer } from "./renderer";

export interface GraphViewProps {
  data: IndexData;
  /** Changes when other data is shown, such as an earlier version. */
  dataKey: string;
  mode: Mode;
  selection: Selection | null;
  highlight: Highlight;
  /** What the newest answer rests on, unless something else is shown: the view moves there. */
  evidence: Highlight;
  filters: Filters;
  /** The only community to show; null: all. */
  only: number | null;
  /** What is shown with the things around it in place of the map; null: the map is shown. */
  around: Surroundings | null;
  path: Address["path"];
  /** What differs from another version; null without a comparison. */
  changes: Changes | null;
  /** Whether the view moves to what has changed; of two pictures that share their view, one decides it. */
  showsChanges: boolean;
  /** Whether types decide the colours of entities. */
  colouredByType: boolean;
  links: LinkedViews;
  hrefOf(selection: Selection): string;
  onSelect(selection: Selection): void;
  /** Called when the map is wanted again in place of what surrounds a thing. */
  onLeave(): void;
}

export interface Graph {
  content: GraphContent;
  camera: GraphCamera;
  loader: GraphLoader;
  /** Null where the browser cannot draw. */
  renderer: Renderer | null;
}

interface GraphEvents {
  onView(): void;
  onCollect(): void;
  onHover(title: string | null): void;
  onSelect(selection: Selection): void;
  onStatus(status: string): void;
  onFailure(message: string): void;
}

// Time for which the list of what is drawn may be late, in milliseconds.
const LIST_DELAY = 120;

/** Make the picture in a container, and load into it what the view shows. */
export function useGraph(container: RefObject<HTMLElement | null>, props: GraphViewProps) {
  const { data, dataKey, only, filters, links, onSelect } = props;
  const [graph, setGraph] = useState<Graph | null>(null);
  const [drawn, setDrawn] = useState<DrawnGraph>(NOTHING_DRAWN);
  const [hovered, setHovered] = useState<string | null>(null);
  const [status, setStatus] = useState("");
  const [failure, setFailure] = useState("");
  const handlers = useRef({ data, onSelect });
  handlers.current = { data, onSelect };

  useEffect(() => {
    let frame = 0;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const list = () => {
      clearTimeout(timer);
      timer = setTimeout(() => setDrawn(made.content.inSight(made.camera.view())), LIST_DELAY);
    };
    const onView = () => {
      cancelAnimationFrame(frame);
      frame = requestAnimationFrame(() => made.loader.follow(handlers.current.data));
      if (made.renderer && !made.content.arrange) links.moved(made.renderer);
      list();
    };
    const made: Graph = makeGraph(container.current!, {
      onView, onCollect: list, onHover: setHovered, onStatus: setStatus, onFailure: setFailure,
      onSelect: (selection) => handlers.current.onSelect(selection),
    });
    setGraph(made);
    const stopFollowing = followTheme(() => made.renderer?.setTheme());
    return () => {
      cancelAnimationFrame(frame);
      clearTimeout(timer);
      stopFollowing();
      made.loader.stop();
      if (made.renderer) links.remove(made.renderer);
      made.renderer?.close();
    };
  }, []);

  // The whole map, or one community alone. A new picture takes the view of the others, if there are any.
  const begun = useRef<Graph | null>(null);
  useEffect(() => {
    if (!graph) return;
    const stop = new AbortController();
    const hasView = begun.current !== graph && graph.renderer !== null && links.add(graph.renderer);
    begun.current = graph;
    graph.loader.begin(data, only, !hasView || only !== null, stop.signal)
      .catch((error: unknown) => { if (!stop.signal.aborted) setStatus(String(error)); });
    return () => { stop.abort(); graph.loader.stop(); };
  }, [graph, dataKey, only]);

  useEffect(() => {
    graph?.loader.setFilters(data, hasFilters(filters) ? filters : null);
  }, [graph, dataKey, JSON.stringify(filters)]);

  const nReturns = useContext(ServerReturns);
  useEffect(() => { if (nReturns) graph?.loader.resume(data); }, [nReturns]);

  return { graph, drawn, hovered, status, setStatus, failure };
}

/** Make a picture; without WebGL, only the view of its table. */
function makeGraph(container: HTMLElement, events: GraphEvents): Graph {
  const content = new GraphContent(events.onCollect);
  let renderer: Renderer | null = null;
  try {
    renderer = new Renderer(container, content, {
      onEntity: (number) => events.onSelect({ kind: "entity", number }),
      onCommunity: (number) => events.onSelect({ kind: "community", number }),
      onView: events.onView, onHover: events.onHover,
    });
  } catch (error) {
    events.onFailure(texts.graph.noDrawing(error instanceof Error ? error.message : ""));
  }
  const camera = renderer ?? new PlainCamera(content, events.onView);
  return { content, camera, renderer, loader: new GraphLoader(content, camera, events.onStatus) };
}

/** Call a function whenever the page changes between light and dark; returns what ends that. */
function followTheme(onChange: () => void): () => void {
  const theme = new MutationObserver(onChange);
  theme.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  return () => theme.disconnect();
}

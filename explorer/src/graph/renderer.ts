/** The graph on the screen: sigma draws entities, a canvas below it draws communities. */

import { UndirectedGraph } from "graphology";
import Sigma from "sigma";
import type { NodeDisplayData } from "sigma/types";
import { texts } from "../texts";
import { type Changes, drawCommunities, drawHoveredName, type Palette, type Pen, type Point, readPalette } from "./drawing";
import { collectDrawn, type DrawnGraph } from "./exportTables";
import type { MapPart, Place } from "./mapPart";
import type { Area, Disc, Scene, View } from "./scene";
import { SvgPen } from "./svgPen";

/** What is emphasized. `places` and `links` are drawn even where their community is closed. */
export interface Emphasis {
  entities: ReadonlySet<number>;
  relationships: ReadonlySet<number>;
  communities: ReadonlySet<number>;
  selected: { kind: string; number: number } | null;
  places: readonly Place[];
  links: readonly { number: number; source: number; target: number; weight: number; stated: boolean }[];
}

export const NO_EMPHASIS: Emphasis = {
  entities: new Set(), relationships: new Set(), communities: new Set(), selected: null, places: [], links: [],
};

export interface RendererEvents {
  onEntity(number: number): void;
  onCommunity(number: number): void;
  onView(view: View): void;
  onHover(title: string | null): void;
}

interface Node { x: number; y: number; label: string; type: string; size: number; hue: number; isPlace: boolean }
interface Edge { number: number; stated: boolean; isLink: boolean }

// Keys of hidden nodes in two corners of the map.
const CORNERS = ["corner-0", "corner-1"];
// Share of the smaller side of the view that a disc takes after the view has moved to it.
const FILLED_SHARE = 0.9;
const MOVE_MILLISECONDS = 450;
// Maximum number of lit entities that all have their names.
const MAX_FORCED_NAMES = 10;

export class Renderer {
  private readonly graph = new UndirectedGraph<Node & Record<string, unknown>, Edge & Record<string, unknown>>();
  private readonly sigma: Sigma<Node & Record<string, unknown>, Edge & Record<string, unknown>>;
  private readonly areas: CanvasRenderingContext2D;
  private palette: Palette;
  private emphasis: Emphasis = NO_EMPHASIS;
  private changes: Changes | null = null;
  private hoveredArea: Area | null = null;
  /** The disc that the view has moved to; null once the reader has moved the view. */
  private target: Disc | null = null;
  /** Places of the labels that have been drawn in this picture. */
  private labels: { left: number; right: number; y: number; label: string }[] = [];

  /** Throws an error where the browser has no WebGL. */
  constructor(private readonly container: HTMLElement, private scene: Scene, private readonly events: RendererEvents) {
    this.palette = readPalette(container);
    // Sigma fixes its coordinates by the nodes: without any, the communities would have no place.
    for (const [at, key] of CORNERS.entries()) {
      this.graph.addNode(key, { x: 2 * at - 1, y: 2 * at - 1, label: "", type: "circle", size: 0, hue: 0, isPlace: false });
    }
    this.sigma = new Sigma(this.graph, container, {
      allowInvalidContainer: true, zIndex: true, labelRenderedSizeThreshold: 0, labelDensity: 0.7,
      labelGridCellSize: 90, labelFont: "system-ui, sans-serif", labelSize: 12, minCameraRatio: 1e-5,
      maxCameraRatio: 1.4, zoomToSizeRatioFunction: () => 1, enableCameraRotation: false, stagePadding: 8,
      labelColor: { color: this.palette.ink }, minEdgeThickness: 0.6,
      defaultDrawNodeHover: (context, node) => drawHoveredName(context, node, this.palette),
      defaultDrawNodeLabel: (context, node) => this.drawLabel(context, node),
      nodeReducer: (key, node) => this.reduceNode(key, node), edgeReducer: (_, edge) => this.reduceEdge(edge),
    });
    this.sigma.setCustomBBox({ x: [-1, 1], y: [-1, 1] });
    this.sigma.createCanvas("communities", { beforeLayer: "edges" });
    this.areas = this.sigma.getCanvases().communities!.getContext("2d")!;
    this.sigma.on("afterRender", () => this.drawAreas());
    this.sigma.on("beforeRender", () => { this.labels = []; });
    this.sigma.on("clickNode", ({ node }) => events.onEntity(Number(node)));
    this.sigma.on("clickStage", ({ event }) => this.clickArea(event));
    this.sigma.on("enterNode", ({ node }) => events.onHover(this.graph.getNodeAttribute(node, "label")));
    this.sigma.on("leaveNode", () => events.onHover(null));
    this.sigma.on("moveBody", ({ event }) => this.hoverArea(event));
    this.sigma.getCamera().on("updated", () => events.onView(this.view()));
    this.sigma.on("resize", () => {
      events.onView(this.view());
      // A panel that opens beside the graph must not push aside what was chosen.
      requestAnimationFrame(() => { if (this.target) this.moveTo(this.target); });
    });
    for (const event of ["wheel", "pointerdown"]) container.addEventListener(event, () => { this.target = null; });
  }

  /** Draw another scene. The view stays where it is. */
  setScene(scene: Scene): void {
    this.scene = scene;
    this.update();
  }

  /** Draw the things that the scene shows now. */
  update(): void {
    const wanted = new Map<string, Node>();
    for (const part of this.scene.openParts()) if (part.kind === "entities") this.collect(part, wanted);
    for (const { number, title, type, x, y } of this.emphasis.places) {
      const key = String(number);
      if (!wanted.has(key)) wanted.set(key, { x, y, label: title, type: "circle", kind: type, size: 5, hue: -1, isPlace: true } as Node);
    }
    for (const key of this.graph.nodes()) {
      if (!wanted.has(key) && !CORNERS.includes(key)) this.graph.dropNode(key);
    }
    for (const [key, node] of wanted) this.graph.mergeNode(key, { ...node });
    this.graph.clearEdges();
    for (const part of this.scene.openParts()) if (part.kind === "entities") this.addEdges(part);
    for (const { number, source, target, stated } of this.emphasis.links) {
      this.addEdge(number, String(source), String(target), stated, true);
    }
    this.sigma.refresh();
  }

  setEmphasis(emphasis: Emphasis): void {
    this.emphasis = emphasis;
    this.update();
  }

  /** Colour what was added or changed, and nothing else; null: colour communities. */
  setChanges(changes: Changes | null): void {
    this.changes = changes;
    this.update();
  }

  /** Read the colours again after the theme has changed. */
  setTheme(): void {
    this.palette = readPalette(this.container);
    this.sigma.setSetting("labelColor", { color: this.palette.ink });
    this.sigma.refresh();
  }

  /** Move the view so that a disc fills it. */
  moveTo(disc: Disc, quickly = false): void {
    this.target = disc;
    const { x, y, radius } = disc;
    const { width, height } = this.sigma.getDimensions();
    const center = this.sigma.viewportToFramedGraph(this.toScreen({ x, y }));
    const camera = this.sigma.getCamera();
    const ratio = camera.ratio * (radius * this.scale()) / (FILLED_SHARE * Math.min(width, height) / 2);
    const state = { ...center, ratio: camera.getBoundedRatio(ratio), angle: 0 };
    if (quickly || matchMedia("(prefers-reduced-motion: reduce)").matches) camera.setState(state);
    else void camera.animate(state, { duration: MOVE_MILLISECONDS });
  }

  zoom(factor: number): void {
    this.target = null;
    const camera = this.sigma.getCamera();
    void camera.animate({ ratio: camera.getBoundedRatio(camera.ratio / factor) }, { duration: 200 });
  }

  /** Move the view by shares of its size. */
  pan(right: number, down: number): void {
    this.target = null;
    const { width, height } = this.sigma.getDimensions();
    const point = { x: width * (0.5 + right), y: height * (0.5 + down) };
    void this.sigma.getCamera().animate(this.sigma.viewportToFramedGraph(point), { duration: 200 });
  }

  view(): View {
    const { width, height } = this.sigma.getDimensions();
    const scale = this.scale();
    const { x, y } = this.sigma.viewportToGraph({ x: width / 2, y: height / 2 });
    return { x, y, halfWidth: width / 2 / scale, halfHeight: height / 2 / scale, scale };
  }

  /** Return the pixel of a point of the map. Without the camera sigma takes that of the last frame. */
  private toScreen(point: Point): Point {
    return this.sigma.graphToViewport(point, { cameraState: this.sigma.getCamera().getState() });
  }

  /** Pixels per unit of the map. */
  private scale(): number {
    const [one, other] = [{ x: 0, y: 0 }, { x: 1, y: 0 }].map((point) => this.toScreen(point));
    return Math.hypot(other!.x - one!.x, other!.y - one!.y);
  }

  close(): void {
    this.sigma.kill();
  }

  private collect(part: MapPart, wanted: Map<string, Node>): void {
    const home = this.scene.disc(part.community);
    const hue = this.scene.areas.get(part.community)?.hue ?? 0;
    // Dots of a community with few entities are larger; in a crowd they must not overlap.
    const room = home.radius * this.scale() / Math.sqrt(part.number.length);
    for (let at = 0; at < part.number.length; at += 1) {
      const size = Math.min(3 + Math.sqrt(part.size[at]!) * 0.9, Math.max(2, room * 0.45));
      wanted.set(String(part.number[at]!), {
        x: home.x + home.radius * part.x[at]!, y: home.y + home.radius * part.y[at]!,
        label: part.title[at]!, type: "circle", size, hue, isPlace: false,
      });
    }
  }

  private addEdges(part: MapPart): void {
    for (let at = 0; at < part.source.length; at += 1) {
      const [source, target] = [part.source[at]!, part.target[at]!].map((end) => String(part.number[end]!));
      this.addEdge(part.relationship[at]!, source!, target!, Boolean(part.stated[at]), false);
    }
  }

  private addEdge(number: number, source: string, target: string, stated: boolean, isLink: boolean): void {
    if (source === target || !this.graph.hasNode(source) || !this.graph.hasNode(target)) return;
    this.graph.mergeEdge(source, target, { number, stated, isLink });
  }

  private get isDimmed(): boolean {
    const { entities, relationships, communities, places } = this.emphasis;
    return Boolean(entities.size || relationships.size || communities.size || places.length);
  }

  private reduceNode(key: string, node: Node): Partial<NodeDisplayData> {
    if (CORNERS.includes(key)) return { ...node, hidden: true };
    const { entities, selected } = this.emphasis;
    const number = Number(key);
    const isSelected = selected?.kind === "entity" && selected.number === number;
    // Names of many entities would cover each other: then sigma chooses some of them.
    const hasRoom = entities.size <= MAX_FORCED_NAMES || isSelected;
    const isLit = isSelected || node.isPlace || entities.has(number);
    const change = this.changes?.entities.get(number);
    const hue = change ? this.palette[change] : this.changes ? this.palette.none : node.hue < 0 ? this.palette.accent : this.palette.hues[node.hue % this.palette.hues.length]!;
    return {
      ...node, type: "circle", color: isSelected ? this.palette.accent : !this.isDimmed || isLit ? hue : this.palette.line,
      size: isSelected ? node.size + 3 : isLit ? node.size + 1.5 : node.size,
      label: !this.isDimmed || isLit ? node.label : null, forceLabel: isLit && hasRoom, zIndex: isSelected ? 2 : isLit ? 1 : 0,
      highlighted: isSelected,
    };
  }

  private reduceEdge(edge: Edge): { color: string; size: number; zIndex: number; type: string } {
    const isLit = edge.isLink || this.emphasis.relationships.has(edge.number);
    if (isLit) return { color: this.palette.accent, size: edge.stated ? 2.2 : 1, zIndex: 1, type: "line" };
    if (this.isDimmed) return { color: this.palette.line, size: 1, zIndex: 0, type: "line" };
    const change = this.changes?.relationships.get(edge.number);
    if (change) return { color: this.palette[change], size: edge.stated ? 2 : 1, zIndex: 1, type: "line" };
    if (this.changes) return { color: this.palette.line, size: 1, zIndex: 0, type: "line" };
    if (!edge.stated) return { color: this.palette.none, size: 1, zIndex: 0, type: "line" };
    return { color: this.palette.muted, size: 2, zIndex: 0, type: "line" };
  }

  /** Draw the label of an entity, unless it would lie on another label. */
  private drawLabel(
    context: CanvasRenderingContext2D, { x, y, size, label }: { x: number; y: number; size: number; label: string | null },
  ): void {
    if (!label) return;
    context.font = "12px system-ui, sans-serif";
    const left = x + size + 3;
    const right = left + context.measureText(label).width;
    if (this.labels.some((other) => Math.abs(other.y - y) < 13 && other.left < right && left < other.right)) return;
    this.labels.push({ left, right, y, label });
    this.writeLabel(context, label, left, y);
  }

  private writeLabel(context: Pen, label: string, left: number, y: number): void {
    // A rim in the colour of the page separates the letters from lines below them.
    Object.assign(context, { lineWidth: 3, lineJoin: "round", strokeStyle: this.palette.panel, fillStyle: this.palette.ink });
    context.strokeText(label, left, y + 4);
    context.fillText(label, left, y + 4);
  }

  /** Return the picture as SVG. */
  writeSvg(): string {
    const { width, height } = this.sigma.getDimensions();
    const pen = new SvgPen(this.areas.canvas, document.createElement("canvas").getContext("2d")!);
    this.drawAreasWith(pen);
    pen.globalAlpha = 1;
    const edges = this.graph.mapEdges((_, edge, source, target) => ({ ...this.reduceEdge(edge), source, target }));
    for (const { color, size, source, target } of edges.sort((one, other) => one.zIndex - other.zIndex)) {
      const [from, to] = [source, target].map((key) => this.toScreen(this.graph.getNodeAttributes(key) as Point));
      // Sigma draws lines half as wide as their size.
      Object.assign(pen, { strokeStyle: color, lineWidth: Math.max(0.6, size / 2) });
      pen.beginPath();
      pen.moveTo(from!.x, from!.y);
      pen.lineTo(to!.x, to!.y);
      pen.stroke();
    }
    const nodes = this.graph.mapNodes((key, node) => ({ ...node, ...this.reduceNode(key, node), ...this.toScreen(node) }));
    const drawn = nodes.filter((node) => !("hidden" in node && node.hidden));
    for (const { x, y, size, color } of drawn.sort((one, other) => (one.zIndex ?? 0) - (other.zIndex ?? 0))) {
      pen.fillStyle = String(color);
      pen.beginPath();
      pen.arc(x, y, size);
      pen.fill();
    }
    Object.assign(pen, { font: "12px system-ui, sans-serif", textAlign: "start", textBaseline: "alphabetic" });
    for (const { label, left, y } of this.labels) this.writeLabel(pen, label, left, y);
    for (const node of drawn) if (node.highlighted) drawHoveredName(pen, node, this.palette);
    return pen.finish(width, height, this.palette.paper);
  }

  /** Return the picture as PNG, with the pixels of the screen. */
  writePng(): Promise<Blob> {
    // The browser empties the canvases of WebGL after each frame, so they are drawn again first.
    this.sigma.refresh();
    const picture = document.createElement("canvas");
    Object.assign(picture, { width: this.areas.canvas.width, height: this.areas.canvas.height });
    const context = picture.getContext("2d")!;
    context.fillStyle = this.palette.paper;
    context.fillRect(0, 0, picture.width, picture.height);
    for (const canvas of this.container.querySelectorAll("canvas")) {
      if (canvas.width && canvas.height) context.drawImage(canvas, 0, 0, picture.width, picture.height);
    }
    return new Promise((resolve, reject) => {
      picture.toBlob((blob) => (blob ? resolve(blob) : reject(new Error(texts.graph.noPicture))), "image/png");
    });
  }

  /** Return the drawn entities and relationships. */
  drawnGraph(): DrawnGraph {
    return collectDrawn(this.scene, this.emphasis);
  }

  /** Open the closed area nearest to the middle of the view. */
  openNearest(): void {
    const { x, y } = this.view();
    const distance = (area: Area) => Math.hypot(area.x - x, area.y - y) - area.radius;
    const [nearest] = this.scene.closedAreas().sort((one, other) => distance(one) - distance(other));
    if (nearest) this.openArea(nearest);
  }

  /** Move the view to the disc around the community in its middle. */
  leaveInnermost(): void {
    const { x, y, scale } = this.view();
    const { width, height } = this.sigma.getDimensions();
    const around = [...this.scene.openParts()].reverse().map(({ community }) => this.scene.disc(community));
    // The disc that fills the view is the one to leave.
    const larger = around.filter((disc) => disc.radius * scale > 1.1 * FILLED_SHARE * Math.min(width, height) / 2
      && Math.hypot(disc.x - x, disc.y - y) < disc.radius);
    const outer = larger.sort((one, other) => one.radius - other.radius)[0];
    this.moveTo(outer ?? this.scene.disc(this.scene.root));
  }

  private drawAreas(): void {
    // Sigma sets the size of its own canvases only.
    const { canvas } = this.areas;
    const { width, height } = this.sigma.getDimensions();
    const ratio = window.devicePixelRatio || 1;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      Object.assign(canvas, { width: Math.round(width * ratio), height: Math.round(height * ratio) });
      Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
    }
    // Tests and assistive tools can read how much is drawn.
    Object.assign(this.container.dataset, {
      areas: String(this.scene.closedAreas().length), entities: String(this.graph.order - CORNERS.length),
    });
    this.drawAreasWith(this.areas);
  }

  private drawAreasWith(pen: Pen): void {
    const { communities, selected } = this.emphasis;
    const project = { at: (point: Point) => this.sigma.graphToViewport(point), scale: this.scale() };
    drawCommunities(pen, this.scene, project, this.palette, {
      communities, isDimmed: this.isDimmed, changes: this.changes,
      selected: selected?.kind === "community" ? selected.number : this.hoveredArea?.community ?? null,
    });
  }

  /** Return the closed area at a point of the screen, or the innermost opened one on its edge. */
  private areaAt(point: Point): Area | null {
    const { x, y } = this.sigma.viewportToGraph(point);
    return this.scene.closedAreas().find((area) => Math.hypot(area.x - x, area.y - y) <= area.radius) ?? null;
  }

  private clickArea(point: Point): void {
    const area = this.areaAt(point);
    if (area) this.openArea(area);
  }

  private openArea(area: Area): void {
    this.events.onCommunity(area.community);
    this.moveTo(area);
  }

  private hoverArea(point: Point): void {
    const area = this.areaAt(point);
    if (area === this.hoveredArea) return;
    this.hoveredArea = area;
    this.events.onHover(area?.title ?? null);
    this.container.style.cursor = area ? "pointer" : "default";
    this.drawAreas();
  }
}

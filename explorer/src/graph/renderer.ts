/** The graph on the screen: sigma draws entities, a canvas below it draws communities. */

import { UndirectedGraph } from "graphology";
import Sigma from "sigma";
import type { CameraState, NodeDisplayData } from "sigma/types";
import { texts } from "../texts";
import { type Look, lookOfEntity, lookOfRelationship, isDimmed, type Palette, readPalette } from "./appearance";
import type { GraphCamera, GraphContent } from "./content";
import { type Box, drawCommunities, drawHoveredName, drawLegend, isInside, type LegendSign, overlap, type Pen, type Point, shorten } from "./drawing";
import { type DrawnEntity, type DrawnRelationship, keepVisibleCommunities } from "./drawn";
import { type Area, FILLED_SHARE, type Part, scaleOf, type View } from "./scene";
import { SvgPen } from "./svgPen";

export interface RendererEvents {
  onEntity(number: number): void;
  onCommunity(number: number): void;
  /** Called when the view has moved or changed its size. */
  onView(): void;
  onHover(title: string | null): void;
}

/** An entity as a node; null for the hidden nodes in the corners. */
interface Node { x: number; y: number; entity: DrawnEntity | null; hue: number; size: number }
interface Edge { relationship: DrawnRelationship }

// Keys of hidden nodes in two corners of the map.
const CORNERS = ["corner-0", "corner-1"];
const MOVE_MILLISECONDS = 450;
const STEP_MILLISECONDS = 200;
// Radius in pixels of an entity that is drawn on a closed community, and of what is lit with its rim.
const PLACE_RADIUS = 5;
const LIT_RADIUS = 7;
const NAME_HEIGHT = 14;
const MAX_SHORT_NAME = 90;
const NAME_FONT = "12px system-ui, sans-serif";

interface NamePlace extends Box { label: string; y: number }

/** Return the places around a dot for its name, the best first. */
function placeName(
  context: CanvasRenderingContext2D, label: string, { x, y, size }: { x: number; y: number; size: number },
  isPath: boolean,
): NamePlace[] {
  const width = context.measureText(label).width;
  const half = NAME_HEIGHT / 2;
  const [right, left, middle] = [x + size + 3, x - size - 3 - width, x - width / 2];
  const away = size + half + 2;
  const beside = [[right, y], [left, y], [right, y - NAME_HEIGHT], [right, y + NAME_HEIGHT]] as const;
  const others = [[middle, y + away], [middle, y - away], [left, y + NAME_HEIGHT], [left, y - NAME_HEIGHT]] as const;
  return (isPath ? [...others, ...beside] : [...beside, ...others]).map(([start, at]) => ({ label, y: at, left: start, right: start + width, top: at - half, bottom: at + half }));
}

export class Renderer implements GraphCamera {
  private readonly graph = new UndirectedGraph<Node & Record<string, unknown>, Edge & Record<string, unknown>>();
  private readonly sigma: Sigma<Node & Record<string, unknown>, Edge & Record<string, unknown>>;
  private readonly areas: CanvasRenderingContext2D;
  private readonly resizing: ResizeObserver;
  private palette: Palette;
  private hoveredArea: Area | null = null;
  target: Part | null = null;
  /** Names of entities that have been drawn in this picture. */
  private names: NamePlace[] = [];
  /** The picture, the buttons on it, and the dots of what surrounds a thing: names keep clear of these. */
  private frame: Box = { left: 0, right: 0, top: 0, bottom: 0 };
  private blocked: Box[] = [];
  private dots: Box[] = [];

  /** Throws an error where the browser has no WebGL. */
  constructor(
    private readonly container: HTMLElement, private readonly content: GraphContent,
    private readonly events: RendererEvents,
  ) {
    this.palette = readPalette(container);
    // Sigma fixes its coordinates by the nodes: without any, the communities would have no place.
    for (const [at, key] of CORNERS.entries()) {
      this.graph.addNode(key, { x: 2 * at - 1, y: 2 * at - 1, entity: null, size: 0, hue: 0 });
    }
    this.sigma = new Sigma(this.graph, container, {
      allowInvalidContainer: true, zIndex: true, labelRenderedSizeThreshold: 0, labelDensity: 0.7,
      labelGridCellSize: 90, labelFont: "system-ui, sans-serif", labelSize: 12, minCameraRatio: 1e-5,
      maxCameraRatio: 1.4, zoomToSizeRatioFunction: () => 1, enableCameraRotation: false, stagePadding: 8,
      labelColor: { color: this.palette.ink }, minEdgeThickness: 0.6,
      defaultDrawNodeHover: (context, node) => {
        const name = drawHoveredName(context, node, this.palette, this.frame);
        if (node.highlighted && name) this.names.push({ ...name, label: "", y: node.y });
      },
      defaultDrawNodeLabel: (context, node) => this.drawName(context, node),
      nodeReducer: (_, node) => this.reduceNode(node),
      edgeReducer: (_, { relationship }) => ({ ...lookOfRelationship(relationship, this.look), type: "line" }),
    });
    this.sigma.setCustomBBox({ x: [-1, 1], y: [-1, 1] });
    this.sigma.createCanvas("communities", { beforeLayer: "edges" });
    this.areas = this.sigma.getCanvases().communities!.getContext("2d")!;
    this.sigma.on("afterRender", () => this.drawAreas());
    this.sigma.on("beforeRender", () => this.clearPlaces());
    this.sigma.on("clickNode", ({ node }) => events.onEntity(Number(node)));
    this.sigma.on("clickStage", ({ event }) => {
      const area = this.areaAt(event);
      if (area) this.openArea(area);
    });
    this.sigma.on("enterNode", ({ node }) => {
      const entity = this.graph.getNodeAttribute(node, "entity");
      events.onHover(entity && [entity.title, entity.type].filter(Boolean).join(" · "));
    });
    this.sigma.on("leaveNode", () => events.onHover(null));
    // Sigma tells of the whole page: what lies beside the picture is not pointed at.
    this.sigma.on("moveBody", ({ event }) =>
      this.hoverArea(container.contains(event.original.target as Element) ? this.areaAt(event) : null));
    this.sigma.on("leaveStage", () => this.hoverArea(null));
    this.sigma.getCamera().on("updated", () => events.onView());
    this.sigma.on("resize", () => {
      if (content.arrange) this.update();
      events.onView();
      // A panel that opens beside the graph must not push aside what was chosen.
      requestAnimationFrame(() => { if (this.target) this.moveTo(this.target); });
    });
    // Sigma itself looks at the size of the window only.
    this.resizing = new ResizeObserver(() => this.sigma.scheduleRefresh());
    this.resizing.observe(container);
    for (const event of ["wheel", "pointerdown"]) container.addEventListener(event, () => { this.target = null; });
  }

  private get look(): Look {
    const { emphasis, changes, typeHues, areasByType } = this.content;
    return { palette: this.palette, emphasis, changes, typeHues, areasByType };
  }

  update(): void {
    const { scene } = this.content;
    this.content.shape = this.sigma.getDimensions();
    const { entities, relationships } = this.content.collect();
    const wanted = new Map(entities.map((entity) => [String(entity.number), entity]));
    for (const key of this.graph.nodes()) {
      if (!wanted.has(key) && !CORNERS.includes(key)) this.graph.dropNode(key);
    }
    for (const [key, entity] of wanted) {
      const { x, y, community } = entity;
      const hue = community === null ? -1 : scene.areas.get(community)?.hue ?? 0;
      this.graph.mergeNode(key, { x, y, entity, hue, size: this.sizeOf(entity) });
    }
    this.graph.clearEdges();
    // Of several relationships between two entities, the line is that of one that is lit or stated.
    const strength = ({ isLit, stated }: DrawnRelationship) => 2 * Number(isLit) + Number(stated);
    for (const relationship of [...relationships].sort((one, other) => strength(one) - strength(other))) {
      const { source, target } = relationship;
      if (source !== target) this.graph.mergeEdge(String(source), String(target), { relationship });
    }
    this.sigma.refresh();
  }

  /** Read the colours again after the theme has changed. */
  setTheme(): void {
    this.palette = readPalette(this.container);
    this.sigma.setSetting("labelColor", { color: this.palette.ink });
    this.sigma.refresh();
  }

  moveTo(part: Part, quickly = false): void {
    this.target = part;
    const { x, y } = part;
    const { width, height } = this.sigma.getDimensions();
    const center = this.sigma.viewportToFramedGraph(this.toScreen({ x, y }));
    const camera = this.sigma.getCamera();
    const ratio = camera.ratio * this.scale() / scaleOf(part, width / 2, height / 2);
    this.moveCamera({ ...center, ratio: camera.getBoundedRatio(ratio), angle: 0 }, quickly ? 0 : MOVE_MILLISECONDS);
  }

  private moveCamera(state: Partial<CameraState>, duration: number): void {
    const camera = this.sigma.getCamera();
    if (!duration || matchMedia("(prefers-reduced-motion: reduce)").matches) camera.setState(state);
    else void camera.animate(state, { duration });
  }

  zoom(factor: number): void {
    this.target = null;
    const camera = this.sigma.getCamera();
    this.moveCamera({ ratio: camera.getBoundedRatio(camera.ratio / factor) }, STEP_MILLISECONDS);
  }

  pan(right: number, down: number): void {
    this.target = null;
    const { width, height } = this.sigma.getDimensions();
    const point = { x: width * (0.5 + right), y: height * (0.5 + down) };
    this.moveCamera(this.sigma.viewportToFramedGraph(point), STEP_MILLISECONDS);
  }

  view(): View {
    const { width, height } = this.sigma.getDimensions();
    const scale = this.scale();
    const cameraState = this.sigma.getCamera().getState();
    const { x, y } = this.sigma.viewportToGraph({ x: width / 2, y: height / 2 }, { cameraState });
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
    this.resizing.disconnect();
    this.sigma.kill();
  }

  /** The place of the camera, which pictures of the same map can share. */
  get camera(): CameraState {
    return this.sigma.getCamera().getState();
  }

  set camera(state: CameraState) {
    this.target = null;
    this.sigma.getCamera().setState(state);
  }

  private sizeOf({ community, relationships, radius }: DrawnEntity): number {
    if (radius) return radius;
    const part = community === null ? undefined : this.content.scene.parts.get(community);
    if (!part) return PLACE_RADIUS;
    // Dots of a community with few entities are larger; in a crowd they must not overlap.
    const room = this.content.scene.disc(part.community).radius * this.scale() / Math.sqrt(part.number.length);
    return Math.min(3 + Math.sqrt(relationships ?? 0) * 0.9, Math.max(2, room * 0.45));
  }

  private reduceNode({ x, y, entity, hue, size }: Node): Partial<NodeDisplayData> {
    if (!entity) return { x, y, hidden: true };
    return { x, y, type: "circle", ...lookOfEntity(entity, hue, size, this.look) };
  }

  /** Draw the name of an entity where it lies on no other name; one that is lit or placed has several places. */
  private drawName(
    context: CanvasRenderingContext2D,
    { x, y, size, label, forceLabel }: { x: number; y: number; size: number; label: string | null; forceLabel?: boolean },
  ): void {
    if (!label) return;
    context.font = NAME_FONT;
    const isPlaced = this.content.arrange !== null;
    const isFree = (name: Box, others: readonly Box[]) =>
      isInside(name, this.frame) && !others.some((other) => overlap(other, name));
    const taken = [...this.blocked, ...this.names];
    // The lines of paths run from left to right, so names stand below and above.
    const isPath = isPlaced && !this.content.drawn.outlines;
    const full = placeName(context, label, { x, y, size }, isPath);
    const names = forceLabel ? full : full.slice(0, 2);
    const name = names.find((one) => isFree(one, isPlaced ? [...taken, ...this.dots] : taken))
      // What surrounds a thing has all its names: shortened, or at last on a line or a dot.
      ?? (isPlaced ? [...placeName(context, shorten(context, label, MAX_SHORT_NAME), { x, y, size }, isPath), ...full] : [])
        .find((one) => isFree(one, taken));
    if (!name) return;
    this.names.push(name);
    this.writeName(context, name.label, name.left, name.y);
  }

  private writeName(context: Pen, label: string, left: number, y: number): void {
    // A rim in the colour of the page separates the letters from lines below them.
    Object.assign(context, { lineWidth: 3, lineJoin: "round", strokeStyle: this.palette.panel, fillStyle: this.palette.ink });
    context.strokeText(label, left, y + 4);
    context.fillText(label, left, y + 4);
  }

  /** Return the picture as SVG, with the meaning of its colours. */
  writeSvg(legend: readonly LegendSign[]): string {
    const { width, height } = this.sigma.getDimensions();
    const pen = new SvgPen(this.areas.canvas, document.createElement("canvas").getContext("2d")!);
    this.drawAreasWith(pen);
    pen.globalAlpha = 1;
    const { look } = this;
    const edges = this.graph.mapEdges((_, { relationship }, source, target) =>
      ({ ...lookOfRelationship(relationship, look), source, target }));
    for (const { color, size, source, target } of edges.sort((one, other) => one.zIndex - other.zIndex)) {
      const [from, to] = [source, target].map((key) => this.toScreen(this.graph.getNodeAttributes(key) as Point));
      // Sigma draws lines half as wide as their size.
      Object.assign(pen, { strokeStyle: color, lineWidth: Math.max(0.6, size / 2) });
      pen.beginPath();
      pen.moveTo(from!.x, from!.y);
      pen.lineTo(to!.x, to!.y);
      pen.stroke();
    }
    const nodes = this.graph.mapNodes((_, node) => node).flatMap((node) =>
      (node.entity ? [{ ...lookOfEntity(node.entity, node.hue, node.size, look), ...this.toScreen(node) }] : []));
    for (const { x, y, size, color } of nodes.sort((one, other) => one.zIndex - other.zIndex)) {
      pen.fillStyle = color;
      pen.beginPath();
      pen.arc(x, y, size);
      pen.fill();
    }
    Object.assign(pen, { font: NAME_FONT, textAlign: "start", textBaseline: "alphabetic" });
    for (const { label, left, y } of this.names) if (label) this.writeName(pen, label, left, y);
    for (const node of nodes) if (node.highlighted) drawHoveredName(pen, node, this.palette, this.frame);
    if (legend.length) drawLegend(pen, legend, this.palette, height);
    return pen.finish(width, height, this.palette.paper);
  }

  /** Return the picture as PNG, with the pixels of the screen and the meaning of its colours. */
  writePng(legend: readonly LegendSign[]): Promise<Blob> {
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
    const { width, height } = this.sigma.getDimensions();
    context.scale(picture.width / width, picture.height / height);
    if (legend.length) drawLegend(context, legend, this.palette, height);
    return new Promise((resolve, reject) => {
      picture.toBlob((blob) => (blob ? resolve(blob) : reject(new Error(texts.graph.noPicture))), "image/png");
    });
  }

  /** Open the closed area nearest to the middle of the view. */
  openNearest(): void {
    const { x, y } = this.view();
    const distance = (area: Area) => Math.hypot(area.x - x, area.y - y) - area.radius;
    const [nearest] = this.closedAreas().sort((one, other) => distance(one) - distance(other));
    if (nearest) this.openArea(nearest);
  }

  /** Move the view to the disc around the community in its middle. */
  leaveInnermost(): void {
    const { x, y, scale } = this.view();
    const { width, height } = this.sigma.getDimensions();
    const { scene } = this.content;
    const around = scene.openParts().filter(({ community }) => community !== scene.root).map(({ community }) => scene.disc(community));
    // The disc that fills the view is the one to leave.
    const larger = around.filter((disc) => disc.radius * scale > 1.1 * FILLED_SHARE * Math.min(width, height) / 2
      && Math.hypot(disc.x - x, disc.y - y) < disc.radius);
    const outer = larger.sort((one, other) => one.radius - other.radius)[0];
    this.moveTo(outer ?? scene.whole());
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
    this.drawAreasWith(this.areas);
  }

  private drawAreasWith(pen: Pen): void {
    const { selected } = this.content.emphasis;
    const project = { at: (point: Point) => this.sigma.graphToViewport(point), scale: this.scale() };
    drawCommunities(pen, {
      ...keepVisibleCommunities(this.content.drawn, this.view()), look: this.look,
      names: [...this.names, ...this.blocked, ...this.placeLitDots(project.at)], frame: this.frame,
      outlines: this.content.drawn.outlines ?? [],
      isDimmed: isDimmed(this.content.emphasis), showsTypes: this.content.showsTypes,
      selected: selected?.kind === "community" ? selected.number : this.hoveredArea?.community ?? null,
    }, project);
  }

  /** Look where names may be drawn in the next picture. */
  private clearPlaces(): void {
    const { width, height } = this.sigma.getDimensions();
    const origin = this.container.getBoundingClientRect();
    this.names = [];
    this.frame = { left: 2, right: width - 2, top: 2, bottom: height - 2 };
    this.blocked = [...this.container.parentElement?.querySelectorAll(".graph-buttons") ?? []].map((element) => {
      const { left, right, top, bottom } = element.getBoundingClientRect();
      return { left: left - origin.left, right: right - origin.left, top: top - origin.top, bottom: bottom - origin.top };
    });
    this.dots = this.content.arrange === null ? [] : this.content.drawn.entities.map((entity) => {
      const { x, y } = this.toScreen(entity);
      const radius = entity.radius ?? 0;
      return { left: x - radius, right: x + radius, top: y - radius, bottom: y + radius };
    });
  }

  /** Return the places of entities that are drawn on closed communities. */
  private placeLitDots(at: (point: Point) => Point): Box[] {
    return this.content.drawn.entities.filter(({ community, radius }) => community === null && !radius).map((entity) => {
      const { x, y } = at(entity);
      return { left: x - LIT_RADIUS, right: x + LIT_RADIUS, top: y - LIT_RADIUS, bottom: y + LIT_RADIUS };
    });
  }

  private closedAreas(): Area[] {
    return this.content.drawn.communities.filter(({ isOpen }) => !isOpen);
  }

  /** Return the closed area at a point of the screen, or the innermost opened one on its edge. */
  private areaAt(point: Point): Area | null {
    const { x, y } = this.sigma.viewportToGraph(point);
    return this.closedAreas().find((area) => Math.hypot(area.x - x, area.y - y) <= area.radius) ?? null;
  }

  private openArea(area: Area): void {
    this.events.onCommunity(area.community);
    this.moveTo(area);
  }

  private hoverArea(area: Area | null): void {
    if (area === this.hoveredArea) return;
    this.hoveredArea = area;
    this.events.onHover(area?.title ?? null);
    this.container.style.cursor = area ? "pointer" : "default";
    this.drawAreas();
  }
}

/** The graph on the screen: sigma draws entities, a canvas below it draws communities. */

import { UndirectedGraph } from "graphology";
import Sigma from "sigma";
import type { CameraState, NodeDisplayData } from "sigma/types";
import { texts } from "../texts";
import { type Look, lookOfEntity, lookOfRelationship, isDimmed, type Palette, readPalette } from "./appearance";
import type { GraphCamera, GraphContent } from "./content";
import { type Box, drawCommunities, drawHoveredName, drawLegend, type LegendSign, overlap, type Pen, type Point } from "./drawing";
import { type DrawnEntity, type DrawnRelationship, keepVisibleCommunities } from "./drawn";
import type { Area, Disc, View } from "./scene";
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
// Share of the smaller side of the view that a disc takes after the view has moved to it.
const FILLED_SHARE = 0.9;
const MOVE_MILLISECONDS = 450;
// Radius in pixels of an entity that is drawn on a closed community, and of what is lit with its rim.
const PLACE_RADIUS = 5;
const LIT_RADIUS = 7;
const NAME_HEIGHT = 14;
const NAME_FONT = "12px system-ui, sans-serif";

export class Renderer implements GraphCamera {
  private readonly graph = new UndirectedGraph<Node & Record<string, unknown>, Edge & Record<string, unknown>>();
  private readonly sigma: Sigma<Node & Record<string, unknown>, Edge & Record<string, unknown>>;
  private readonly areas: CanvasRenderingContext2D;
  private readonly resizing: ResizeObserver;
  private palette: Palette;
  private hoveredArea: Area | null = null;
  /** The disc that the view has moved to; null once the reader has moved the view. */
  private target: Disc | null = null;
  /** Names of entities that have been drawn in this picture. */
  private names: (Box & { label: string; y: number })[] = [];

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
        const name = drawHoveredName(context, node, this.palette);
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
    this.sigma.on("beforeRender", () => { this.names = []; });
    this.sigma.on("clickNode", ({ node }) => events.onEntity(Number(node)));
    this.sigma.on("clickStage", ({ event }) => this.clickArea(event));
    this.sigma.on("enterNode", ({ node }) => this.hoverEntity(this.graph.getNodeAttribute(node, "entity")));
    this.sigma.on("leaveNode", () => events.onHover(null));
    this.sigma.on("moveBody", ({ event }) => this.hoverArea(event));
    this.sigma.getCamera().on("updated", () => events.onView());
    this.sigma.on("resize", () => {
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
    const { emphasis, changes, typeHues } = this.content;
    return { palette: this.palette, emphasis, changes, typeHues };
  }

  update(): void {
    const { scene } = this.content;
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

  pan(right: number, down: number): void {
    this.target = null;
    const { width, height } = this.sigma.getDimensions();
    const point = { x: width * (0.5 + right), y: height * (0.5 + down) };
    void this.sigma.getCamera().animate(this.sigma.viewportToFramedGraph(point), { duration: 200 });
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

  private sizeOf({ community, relationships }: DrawnEntity): number {
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

  /** Draw the name of an entity, unless it would lie on another name; one that is lit has several places. */
  private drawName(
    context: CanvasRenderingContext2D,
    { x, y, size, label, forceLabel }: { x: number; y: number; size: number; label: string | null; forceLabel?: boolean },
  ): void {
    if (!label) return;
    context.font = NAME_FONT;
    const width = context.measureText(label).width;
    const right = x + size + 3;
    const places = [[right, y], [x - size - 3 - width, y], [right, y - NAME_HEIGHT], [right, y + NAME_HEIGHT]] as const;
    for (const [left, middle] of forceLabel ? places : places.slice(0, 1)) {
      const half = NAME_HEIGHT / 2;
      const name = { label, y: middle, left, right: left + width, top: middle - half, bottom: middle + half };
      if (this.names.some((other) => overlap(other, name))) continue;
      this.names.push(name);
      this.writeName(context, label, left, middle);
      return;
    }
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
    for (const node of nodes) if (node.highlighted) drawHoveredName(pen, node, this.palette);
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
    const [nearest] = this.content.scene.closedAreas().sort((one, other) => distance(one) - distance(other));
    if (nearest) this.openArea(nearest);
  }

  /** Move the view to the disc around the community in its middle. */
  leaveInnermost(): void {
    const { x, y, scale } = this.view();
    const { width, height } = this.sigma.getDimensions();
    const around = [...this.content.scene.openParts()].reverse().map(({ community }) => this.content.scene.disc(community));
    // The disc that fills the view is the one to leave.
    const larger = around.filter((disc) => disc.radius * scale > 1.1 * FILLED_SHARE * Math.min(width, height) / 2
      && Math.hypot(disc.x - x, disc.y - y) < disc.radius);
    const outer = larger.sort((one, other) => one.radius - other.radius)[0];
    this.moveTo(outer ?? this.content.scene.disc(this.content.scene.root));
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
      names: [...this.names, ...this.placeLitDots(project.at)],
      isDimmed: isDimmed(this.content.emphasis), showsTypes: this.content.showsTypes,
      selected: selected?.kind === "community" ? selected.number : this.hoveredArea?.community ?? null,
    }, project);
  }

  /** Return the places of entities that are drawn on closed communities. */
  private placeLitDots(at: (point: Point) => Point): Box[] {
    return this.content.drawn.entities.filter(({ community }) => community === null).map((entity) => {
      const { x, y } = at(entity);
      return { left: x - LIT_RADIUS, right: x + LIT_RADIUS, top: y - LIT_RADIUS, bottom: y + LIT_RADIUS };
    });
  }

  private hoverEntity(entity: DrawnEntity | null): void {
    this.events.onHover(entity && [entity.title, entity.type].filter(Boolean).join(" · "));
  }

  /** Return the closed area at a point of the screen, or the innermost opened one on its edge. */
  private areaAt(point: Point): Area | null {
    const { x, y } = this.sigma.viewportToGraph(point);
    return this.content.scene.closedAreas().find((area) => Math.hypot(area.x - x, area.y - y) <= area.radius) ?? null;
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

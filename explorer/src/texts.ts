/** All texts of the page, in one place, so that it can be translated. */

import type { Answer } from "./api";
import type { Kind } from "./state";

const LANGUAGE = "en";
const whole = new Intl.NumberFormat(LANGUAGE);
const short = new Intl.NumberFormat(LANGUAGE, { maximumSignificantDigits: 3 });
const money = new Intl.NumberFormat(LANGUAGE, { style: "currency", currency: "USD", maximumSignificantDigits: 2 });

const number = (value: number) => whole.format(value);
/** Return a function that counts things, such as "1 entity" and "2 entities". */
const counted = (one: string, many: string) => (count: number) =>
  `${number(count)} ${count === 1 ? one : many}`;

const entities = counted("entity", "entities");
const textUnits = counted("passage", "passages");
const documents = counted("document", "documents");
const relationships = counted("relationship", "relationships");
const reports = counted("report", "reports");

const steps = counted("step", "steps");

const kinds: Record<Kind, string> = {
  entity: "Entity", relationship: "Relationship", community: "Community", text_unit: "Passage",
  document: "Document",
};
const marks: Record<Kind, string> = {
  entity: "entity", relationship: "link", community: "report", text_unit: "passage",
  document: "document",
};

export const texts = {
  title: "graphrag-index",
  index: "Index",
  close: "Close",
  retry: "Try again",
  loading: "Loading",
  none: "None.",
  number,
  decimal: (value: number) => short.format(value),
  seconds: (value: number) => (value < 0.1 ? `${Math.max(1, Math.round(value * 1000))} ms` : `${short.format(value)} s`),
  entities,
  textUnits,
  rows: counted("row", "rows"),
  neighbours: counted("neighbour", "neighbours"),
  found: (count: number) => (count ? `${number(count)} found` : "Nothing has this name or text."),
  showMore: (left: number | null) => (left === null ? "Show more" : `Show more (${number(left)} left)`),
  level: (level: number) => `level ${level}`,
  communityNumber: (community: number) => `community ${community}`,
  rank: (rank: number) => `importance ${short.format(rank)} of 10`,
  version: (version: number) => `version ${version}`,
  ends: (source: string, target: string) => `${source} – ${target}`,
  weight: "weight",
  countedTogether: "only named together",
  statedByText: "stated by a text",
  kinds,
  reference: (kind: Kind, of: number) => `${kinds[kind]} ${of}`,
  referenceMark: (kind: Kind, of: number) => `${marks[kind]} ${of}`,
  showReferences: (hidden: number) => `Show ${number(hidden)} more rows that this rests on`,
  theme: (now: string, next: string) => `Colours: ${now}. Change to ${next}.`,
  tables: {
    entities: "Entities", relationships: "Relationships", communities: "Communities",
    reports: "Reports", documents: "Documents", text_units: "Passages",
  },
  columns: {
    title: "Name", name: "Name", type: "Type", degree: "Neighbours", frequency: "Passages",
    documents: "Documents", mentions: "Mentions", share: "Share",
  } as Record<string, string>,
  menu: {
    label: "Panels", ask: "Ask", more: "More", browse: "Browse", filters: "Filters", versions: "Versions",
  },
  parts: { label: "Parts of the page", graph: "Graph", evidence: "Details" },
  resize: { left: "Width of the left panel", right: "Width of the details" },
  graph: {
    mode: "Form of the graph", graph: "Graph", table: "Table",
    communities: "Communities of the top level", evidence: "Evidence of the answer",
    only: (community: number) => `Only community ${community}`,
    explained: "Graph of communities and entities. Arrow keys move it, plus and minus zoom, Enter opens the community in the middle, Backspace leaves it; the table shows the same.",
    view: "View of the graph", zoomIn: "Zoom in", zoomOut: "Zoom out", whole: "Show the whole graph",
    stated: "stated by a text", counted: "only named together",
    leftOut: (n: number) => `${n.toLocaleString()} with fewer relationships are not drawn.`,
    noDrawing: (why: string) => `This browser cannot draw the graph, so the table is shown. ${why}`,
  },
  find: {
    label: "Find names, reports and passages",
    placeholder: "Find names, reports, passages",
  },
  browse: { lists: "Lists", search: "Search this list", nothing: "No row fits the search and the filters." },
  filters: {
    explained: "The filters apply to questions, to lists and to the graph.",
    set: "Filters are set", types: "Types of entities", dates: "Dates of documents", since: "First",
    until: "Last", dateForm: "such as 1914-08", documents: "Documents",
    column: "Column or key of the metadata", pattern: "Pattern",
    patternForm: "letters/* or *.pdf", add: "Add", clear: "Clear filters", remove: "Remove",
    onlyDocument: "Only this document", only: "Only", between: (since: string, until: string) => [since, until].join("…"),
  },
  versions: {
    explained: "Each run that changed the index left a version. Choose one to see the index as it was.",
    current: "current", newer: "A new version of the index is ready.", show: "Show it",
    asOf: (version: number) => `As of version ${version}`, back: "Back to the current version",
  },
  path: {
    title: "Path", to: "Path to …", toPlaceholder: "Name of another entity",
    none: "No path connects them.",
    rank: (rank: number, hops: number) => `${rank === 1 ? "Best path" : `Path ${rank}`}: ${steps(hops)}`,
  },
  evidence: {
    panel: "Details", otherNames: "Also", relationships: "Relationships", communities: "Communities",
    mentions: "Mentions", noRelationships: "It has no relationship.",
    noMentions: "No text names it.",
    sentences: "Sentences that state it",
    together: "Passages that name both",
    countedExplained: "No sentence states this relationship: the names stand near each other in these passages.",
    noReport: "There is no report on this community.", partOf: "Part of", children: "Parts",
    members: "Members", neighbours: "Neighbouring communities", showOnly: "Show only this community",
    showAll: "Show the whole graph", metadata: "Metadata", named: "Named here",
    earlier: "Show earlier text", later: "Show later text",
  },
  methods: {
    ask: ["Choose for me", "Chooses the search that fits the question."],
    local: ["Local", "About one thing: an entity, its relationships and its passages."],
    global: ["Global", "About the whole corpus: themes, comparisons and counts."],
    basic: ["Passages", "The passages that are most similar to the question."],
    drift: ["Drift", "A broad question, answered in steps."],
    lazy: ["Lazy", "A broad question, without reports."],
    path: ["Path", "How entities are connected."],
    neighbourhood: ["Neighbourhood", "The relationships around an entity."],
    structured: ["Query", "A model writes a query over the tables."],
  } as Record<string, [name: string, what: string]>,
  ask: {
    label: "Question", placeholder: "Ask about these documents", next: "Ask on", send: "Ask",
    method: "Search", cancel: "Cancel", cancelled: "Cancelled.", clear: "New conversation",
    again: "Ask again", searching: "Searching", ready: "The answer is complete.",
    welcome: "Ask these documents",
    holds: (nDocuments: number, nEntities: number, nRelationships: number, nReports: number) =>
      `This index holds ${documents(nDocuments)}, ${entities(nEntities)}, ` +
      `${relationships(nRelationships)}${nReports ? ` and ${reports(nReports)}` : ""}.`,
    themes: "What are the main themes?",
    named: "Who is named most often?",
    connected: (first: string, second: string) => `How are ${first} and ${second} connected?`,
    about: (title: string) => `What is known about ${title}?`,
    aboutThis: "Ask about this",
    understoodAs: "Understood as:",
    outcomes: {
      answered: "", no_evidence: "No evidence was found",
      provider_error: "The model did not answer", index_incomplete: "The index lacks what this search reads",
    } as Record<Answer["outcome"], string>,
    tryMethod: (method: string, question: string) => `${method} search: ${question}`,
    citation: (of: number, document: string) => `Citation ${of}: ${document}`,
    sources: counted("cited passage", "cited passages"),
    viaReport: (of: number) => `cited by report ${of}`,
    viaRelationship: "states a relationship",
    followUps: "Further questions",
    lookedAt: "What was looked at", parameters: "Settings of this search", trace: "trace id",
    leftOut: (count: number) => `${reports(count)} were not used:`,
    counts: "Counts",
    calls: counted("call of a model", "calls of a model"),
    noModel: "no model was called",
    tokens: counted("token", "tokens"),
    cost: (cost: number | null) => (cost === null ? "cost unknown" : money.format(cost)),
    pin: "Show the index at this version", copy: "Copy", copied: "Copied",
  },
  sections: {
    Reports: "Reports", Sources: "Passages", Entities: "Entities", Relationships: "Relationships",
    Claims: "Claims",
  } as Record<string, string>,
  lookedAtCount: (name: string, count: number) =>
    `${number(count)} ${(name === "text_units" ? "passages" : name).replace("community_", "").replaceAll("_", " ")}`,
  key: {
    title: "This server wants a key",
    explained: "Ask the person who runs the server for a key. It stays in this tab until you close it.",
    label: "Key", enter: "Enter", leave: "Forget key", wrong: "The server did not accept this key: check it, or ask for another.",
  },
  empty: {
    title: "This index is empty",
    notBuilt: "It has not been built yet. If a run is under way, this page shows the index when it is done; otherwise add documents and start one.",
  },
  staticPage: {
    part: (drawn: number, all: number) =>
      `This page holds the ${drawn.toLocaleString()} entities with the most relationships, of ${all.toLocaleString()} in the index.`,
    documents: (held: number, all: number) =>
      `It holds the texts of ${held.toLocaleString()} of ${all.toLocaleString()} documents.`,
  },
  errors: {
    notOnPage: "This page does not hold that row: open the index with `graphrag-index serve`.",
    noServer: "The server does not answer: check that it runs and that you are connected, then try again.",
    cutOff: "The connection ended before the answer was complete: ask again.",
    unexpected: "Something in this page failed: load the page again.",
    status: (status: number) => `The server answered with status ${status}: try again, or ask the person who runs it.`,
    notInChat: "This view has only the graph: ask the agent for this, or open the explorer of the server.",
    noIndexes: "This key may see no index: ask the person who runs the server.",
    noSuchIndex: (name: string) => `There is no index “${name}” here: choose one above.`,
  },
};

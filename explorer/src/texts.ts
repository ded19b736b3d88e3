/** All texts of the page, in one place, so that it can be translated. */

import type { Answer, QueryLanguage } from "./api";
import type { Decision, EvaluationSummary, Health, Interval } from "./manage/rows";
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
const communities = counted("community", "communities");
const relationships = counted("relationship", "relationships");
const reports = counted("report", "reports");

const steps = counted("step", "steps");
const files = counted("file", "files");
const requests = counted("request", "requests");
const questions = counted("question", "questions");
const checks = counted("check", "checks");
const calls = counted("call of a model", "calls of a model");
const tokens = counted("token", "tokens");
const formatCost = (cost: number | null) => (cost === null ? "cost unknown" : money.format(cost));
const conversations = counted("conversation", "conversations");

function formatBytes(bytes: number): string {
  return bytes < 1e6 ? `${short.format(Math.ceil(bytes / 1e3))} kB` : `${short.format(bytes / 1e6)} MB`;
}

function formatTime(seconds: number): string {
  if (seconds < 60) return `${Math.ceil(seconds)} s`;
  if (seconds < 3600) return `${Math.ceil(seconds / 60)} min`;
  return `${short.format(seconds / 3600)} h`;
}

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
  countOf: (count: number, of: number) => `${number(count)} of ${number(of)}`,
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
    documents: "Documents", mentions: "Mentions", share: "Share", date: "Date",
  } as Record<string, string>,
  menu: {
    label: "Panels", ask: "Ask", conversations: "History", more: "More", browse: "Browse", filters: "Filters", versions: "Versions",
    documents: "Files", names: "Names", health: "Health", evaluations: "Evaluations",
  },
  parts: { label: "Parts of the page", graph: "Graph", evidence: "Details" },
  resize: { left: "Width of the left panel", right: "Width of the details" },
  modes: { graph: "Graph", table: "Table", documents: "Documents", console: "Console" },
  pages: (pages: number, recognized: number) => `${counted("page", "pages")(pages)}${recognized ? `, ${number(recognized)} read by OCR` : ""}`,
  timeline: {
    label: "Documents over time", since: "First date", until: "Last date", documents,
    mentions: counted("passage names it", "passages name it"),
    period: (since: string, until: string) => (since === until ? since : `${since} … ${until}`),
    undated: (count: number) => `${documents(count)} without a date`,
  },
  console: {
    language: "Language", languages: { sql: "SQL", cypher: "Cypher" }, query: "Query", tables: "Tables and columns",
    placeholder: "Ctrl+Enter runs the query", run: "Run", stop: "Stop", running: "The query runs", save: "Save as CSV", result: "Result",
    found: (count: number, isCut: boolean, seconds: number, engine: string) => [
      isCut ? `the first ${number(count)} rows: the query has more` : counted("row", "rows")(count),
      `${short.format(seconds)} s`, engine.replace("real_", ""),
    ].join(" · "),
    examples: {
      sql: [
        ["Types", "SELECT type, count(*) AS entities FROM entities GROUP BY type ORDER BY entities DESC"],
        ["Most linked", "SELECT title, type, degree FROM entities ORDER BY degree DESC LIMIT 20"],
      ],
      cypher: [
        ["Strongest", "MATCH (a:Entity)-[r:RELATED]->(b:Entity) RETURN a.title, b.title, r.weight ORDER BY r.weight DESC LIMIT 20"],
        ["In most documents", "MATCH (e:Entity)<-[:MENTIONS]-(:TextUnit)-[:PART_OF]->(d:Document) RETURN e, count(DISTINCT d) AS documents ORDER BY documents DESC LIMIT 20"],
      ],
    } as Record<QueryLanguage, [name: string, query: string][]>,
  },
  graph: {
    mode: "What is shown",
    evidence: "Evidence of the answer",
    only: (community: number) => `Only community ${community}`,
    explained: "Graph of communities and entities. Arrow keys move it, plus and minus zoom, Enter opens the community in the middle, Backspace leaves it; the table shows the same.",
    view: "View of the graph", zoomIn: "Zoom in", zoomOut: "Zoom out", whole: "Show the whole graph",
    save: {
      label: "Save the view", svg: "Picture (SVG)", png: "Picture (PNG)", gexf: "Graph (GEXF)",
      communities: "Communities (CSV)",
      entities: "Entities (CSV)", relationships: "Relationships (CSV)",
    },
    noPicture: "The browser could not write the picture: the window may be too large.",
    colourBy: "Colour by", colours: { community: "Community", type: "Type" },
    lightType: "Types of entities: light those of a type", otherTypes: "other types",
    typeCount: (type: string, count: number) => `${type} (${number(count)})`,
    filtered: (shown: number, all: number) =>
      `${number(shown)} of the ${entities(all)} that the filters keep are marked on closed communities: open a community to see the others in it.`,
    leftOut: (n: number) => `${number(n)} with fewer relationships are not drawn.`,
    blank: "Nothing lies here: zoom out, or show the whole graph (⤢).",
    noDrawing: (why: string) => `This browser cannot draw the graph, so the table is shown. ${why}`,
  },
  drawn: {
    around: "Where the view is", whole: "Whole graph", state: "State", opened: "opened", closed: "closed",
    open: (title: string) => `Open ${title}`, openShort: "Open", fill: (title: string) => `Zoom in to ${title}`,
    source: "From", target: "To", weight: "Weight", how: "How it is known", change: "Change",
    lit: "lit", summed: "all between two communities",
  },
  find: { label: "Find names, reports and passages", placeholder: "Find names, reports, passages" },
  browse: {
    lists: "Lists", search: "Search this list", nothing: "No row fits the search and the filters.",
    ask: "Ask this as a question",
  },
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
    compare: "Compare", compareWith: (version: number) => `Compare with version ${version}`,
    compared: (from: number, to: number) => `Changes from version ${from} to version ${to}`,
    changed: (kind: "added" | "removed" | "changed", nEntities: number, nRelationships: number, nCommunities: number) =>
      `${kind}: ${[[nEntities, entities], [nRelationships, relationships], [nCommunities, communities]]
        .flatMap(([count, format]) => (count ? [(format as typeof entities)(count as number)] : [])).join(", ")}`,
    earlier: (version: number) => `Before: version ${version}`, later: (version: number) => `After: version ${version}`,
    stop: "Stop comparing", unchanged: "No row differs.", before: "before", after: "after",
    inVersion: (name: string, version: number) => `${name} in version ${version}`,
    kinds: { added: "added", removed: "removed", changed: "changed", renamed: "renamed" },
    current: "current", newer: "A new version of the index is ready.", show: "Show it", showChanges: "Show the changes",
    /** Such as "+1 document" and "3 reports changed". */
    changedRows: (table: "documents" | "entities" | "reports", counts: Record<string, number>): string[] => {
      const { added = 0, removed = 0, changed = 0, renamed = 0 } = counts;
      const format = { documents, entities, reports }[table];
      return [
        ...(added ? [`+${format(added)}`] : []), ...(removed ? [`−${format(removed)}`] : []),
        ...(changed + renamed ? [`${format(changed + renamed)} changed`] : []),
      ];
    },
    asOf: (version: number) => `As of version ${version}`, back: "Back to the current version",
  },
  documents: {
    explained: "These files are the documents of the index. Add and remove files, then start a run, which brings the index up to date with them.",
    files: "Files", noFiles: "There are no files yet: add some, then start a run.",
    more: (count: number) => `and ${number(count)} more`,
    unread: (count: number) => `${files(count)} not read`, search: "Search the files", held: documents, isNew: "not in the index yet",
    size: formatBytes,
    choose: "Add files …", drop: "or drop them on this panel",
    sending: (name: string) => `Sending ${name}`, checking: (name: string) => `The server checks ${name}`,
    waiting: (count: number) => `${files(count)} more`, cancel: "Cancel the upload",
    sent: (sent: number, size: number) => `${formatBytes(sent)} of ${formatBytes(size)}`,
    outcome: (nStored: number, nCancelled: number) => [
      nStored ? `${files(nStored)} stored. A run adds what is new to the index.` : "",
      nCancelled ? `The upload of ${files(nCancelled)} was cancelled.` : "",
    ].filter(Boolean).join(" "),
    sendAgain: (count: number) => `Send ${files(count)} again`,
    tooLarge: (size: number, limit: number) =>
      `The file has ${formatBytes(size)}, and at most ${formatBytes(limit)} are accepted: split it.`,
    taken: (names: string[]) =>
      `${names.slice(0, 5).join(", ")}${names.length > 5 ? ` and ${number(names.length - 5)} more` : ""}: there are files of the same name already. Replace them?`,
    replace: "Replace", keepOld: "Keep the old ones",
    remove: (path: string) => `Remove ${path}`,
    removeExplained: (count: number) =>
      `Delete this file from the server?${count ? ` The next run removes its ${documents(count)} from the index.` : ""}`,
    delete: "Delete", keep: "Keep",
  },
  runs: {
    label: "Runs", start: "Start a run", cancel: "Cancel the run", progress: "Progress of the step",
    retry: (count: number) => `Send ${requests(count)} again`,
    limit: "Limit the cost", budget: "Stop before the calls of models cost more than (dollars)",
    goOn: "Set the limit and go on",
    limited: (budget: number) => `limit ${money.format(budget)}`,
    states: {
      queued: "Waiting for its turn", running: "Running", waiting_budget: "Stopped at its cost limit",
      failed: "The last run failed", cancelled: "The last run was cancelled", done: "The last run is done",
    },
    step: (name: string, at: number, of: number) => `step ${at} of ${of}: ${name.replaceAll("_", " ")}`,
    rows: (done: number, of: number, unit: string) => `${number(done)} of ${number(of)} ${unit}`,
    left: (seconds: number) => `about ${formatTime(seconds)} left`,
    estimate: (count: number, cost: number | null) =>
      `estimate: ${requests(count)}, ${formatCost(cost)}`,
  },
  names: {
    doubtful: "Perhaps the same", same: "The same …", notSame: "Not the same …",
    decided: "Decisions", resolved: "Merged by a rule or a model",
    called: (name: string, title: string) => `“${name}” is called “${title}”.`,
    split: (name: string) => `“${name}” is the name of several things.`,
  },
  curate: {
    title: "Correct the name",
    explained: "What you decide is recorded in resolutions.yaml, and applied by the next run.",
    merge: "Same as …", never: "Not the same as …", rename: "Rename", newTitle: "New name",
    preview: "Preview of the decision", keptTitle: "Name that stays", record: "Record", drop: "Cancel",
    undo: "Undo", known: "This decision is recorded already.", recorded: "This is recorded; a run applies it.",
    toRuns: "Go to the runs", split: "Split …", other: "Name of the other thing",
    choose: "Documents that mean the other thing", next: "Preview",
    splitExplained: "Several things have this name: choose the documents that mean another one. All other documents keep the name. Within one document, the name means one thing.",
    part: (nTextUnits: number, nDocuments: number) => `${textUnits(nTextUnits)} in ${documents(nDocuments)}`,
    describe: (decision: Decision) => {
      if (decision.kind === "rename") return `“${decision.name}” is called “${decision.title}”.`;
      if (decision.kind === "split") {
        return `“${decision.name}” is the name of ${decision.parts.map((part) => `“${part.title}”`).join(" and ")}.`;
      }
      const names = decision.names.map((name) => `“${name}”`).join(" and ");
      return decision.kind === "merge" ? `${names} are the same.` : `${names} are not the same.`;
    },
    changes: (nRelationships: number, nTextUnits: number, nDocuments: number) =>
      `It concerns ${relationships(nRelationships)}, ${textUnits(nTextUnits)} and ${documents(nDocuments)} of:`,
  },
  health: {
    explained: "Checks for inconsistencies and missing parts of the index, and its statistics.",
    checking: "Checking the index; a large one takes half a minute",
    outcome: (failed: number, noted: number) =>
      failed ? `${checks(failed)} failed.`
        : noted ? "All checks passed: what they found is within the limits of settings.yaml."
          : "All checks passed: no defects were found.",
    passed: (count: number) => `${checks(count)} found nothing`,
    noneOf: (of: number) => `none of ${number(of)}`,
    limit: (limit: number, isShare: boolean) =>
      `The limit is ${isShare ? `${short.format(limit * 100)}%` : number(limit)}.`,
    notLookedAt: "Not checked",
    rows: "Rows", graph: "Graph figures", levels: "Levels of communities", languages: "Languages of documents",
    unknown: "unknown",
    table: (name: string) => name.replace("community_", "").replace("text_units", "passages").replaceAll("_", " "),
    graphPairs: (graph: NonNullable<Health["graph"]>): [string, string][] => [
      ["entities", number(graph.nodes)],
      ["linked pairs of entities", number(graph.edges)],
      ["neighbours of an entity", `${short.format(graph.average_degree)} on average, at most ${number(graph.largest_degree)}`],
      ["connected parts", `${number(graph.components)}, the largest of ${entities(graph.largest_component)}`],
      ["entities without a neighbour", number(graph.isolated)],
      ...(graph.modularity === null ? [] : [["modularity of level 0", short.format(graph.modularity)] as [string, string]]),
    ],
    levelColumns: ["Level", "Communities", "Entities in each", "Median"],
    range: (smallest: number, largest: number) =>
      (smallest === largest ? number(smallest) : `${number(smallest)} to ${number(largest)}`),
  },
  evaluations: {
    explained: "Means of figures on the answers of this index, measured on questions with known answers. Their intervals are in the reports.",
    nothing: "There is none yet: run `graphrag-index evaluate QUESTIONS` in the project.",
    open: "Open the report", measure: "Measure",
    measured: ({ date, n_questions, systems }: EvaluationSummary) => [
      date.slice(0, 16).replace("T", " "), questions(n_questions),
      [...new Set(systems.map(({ index, version }) => `${index}, version ${version}`))].join(" and "),
    ].join(" · "),
    mean: (mean: number) => mean.toFixed(3),
    interval: ({ low, high, n }: Interval) => `${low.toFixed(3)} to ${high.toFixed(3)}, ${questions(n)}`,
  },
  around: {
    show: "Neighbours", showEntities: "Show in the graph", pin: "Pin", unpin: "Unpin", hide: "Hide",
    neighbours: (title: string) => `Neighbours of ${title}`,
    passage: (document: string) => `Entities of a passage of ${document}`,
    paths: (from: string, to: string) => `Paths from ${from} to ${to}`,
    back: "Map", shown: (shown: number, all: number) => (shown < all ? `${number(shown)} of ${number(all)}` : number(all)),
    showHidden: (count: number) => `Show ${number(count)} hidden`,
    types: "Types: show or hide their entities", noType: "no type",
    collapse: (type: string, isCollapsed: boolean) => (isCollapsed ? `Show the type ${type}` : `Hide the type ${type}`),
    expand: (type: string, isExpanded: boolean) => (isExpanded ? `Only the strongest of the type ${type}` : `All of the type ${type}`),
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
    statements: "Sources of its statements",
    statedBy: (n: number) => n === 0 ? "no cited passage states it" : n === 1 ? "one document" : `${n} documents`,
    noReport: "There is no report on this community.", partOf: "Part of", children: "Parts",
    members: "Members", neighbours: "Neighbouring communities", showOnly: "Show only this community",
    showAll: "Show the whole graph", metadata: "Metadata", named: "Named here", dated: (date: string) => `dated ${date}`,
    citations: "Citations of the answer", previous: "Previous citation", next: "Next citation",
    citationOf: (of: number, all: number) => `Citation ${of} of ${number(all)}`,
    page: (label: string, engine: string, kind: string) =>
      `Page ${label}${engine && (kind === "figure" ? `, figure described by ${engine}` : ", read by OCR")}`,
    earlier: "Show earlier text", later: "Show later text",
  },
  methods: {
    ask: ["Choose for me", "Chooses the search that fits the question."],
    compare: ["Compare", "Several things or periods in one table."],
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
    label: "Question", placeholder: "Ask about these documents", next: "Ask a follow-up question", send: "Ask",
    method: "Search", cancel: "Cancel", cancelled: "Cancelled.", clear: "New conversation",
    newShort: "New", again: "Ask again", searching: "Searching", ready: "The answer is complete.",
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
    lookedAt: "What was looked at", subQuestions: "Questions on the way", askThis: "Ask this",
    parameters: "Settings of this search", trace: "trace id",
    leftOut: (count: number) => `${reports(count)} were not used:`,
    counts: "Counts",
    calls, cost: formatCost,
    effort: ({ method, usage: { calls: n, cost, seconds, prompt_tokens, completion_tokens } }: Answer): string[] => [
      texts.methods[method]?.[0] ?? method, texts.seconds(seconds),
      ...(n ? [calls(n), tokens(prompt_tokens + completion_tokens), formatCost(cost)] : ["no model was called"]),
    ],
    pin: "Show the index at this version", copy: "Copy", copied: "Copied",
  },
  beside: {
    title: "Side by side", question: "Question to all columns", ask: "Ask all", add: "Add a column", close: "Back to the graph",
    column: (at: number) => `Column ${at}`, remove: "Remove the column", version: "Version", current: "current version",
    settings: "Settings of the search, separated by commas", settingsForm: "settings, such as top_k_text_units=5",
    onlyHere: "only here",
    evidence: (shared: number, only: number) => `${textUnits(shared)} shared, ${number(only)} only here`,
  },
  judge: {
    label: "Judge this answer", up: "The answer is right", down: "The answer is wrong", reason: "Why? (may be empty)",
    keep: "Keep", kept: "Kept for evaluations. Press again to withdraw.",
  },
  conversations: {
    name: "Name of the conversation", share: "Share", copied: "The link is copied.", copyThis: "Copy this link:",
    forms: { link: "Copy a link", markdown: "Save as Markdown", html: "Save as a page (HTML)" },
    tooLong: "This conversation is too long for a link: save it as a file, and send that.",
    damaged: "This link is damaged or cut off: ask for it again, or for the conversation as a file.",
    shared: "This conversation came with a link: this server has not checked its answers.",
    dropped: (count: number) => `The browser keeps a limited number: ${conversations(count)} that you had not changed for longest had to go.`,
    notKept: "This browser cannot keep the conversation, for its storage is full or closed: save it as a file.",
    explained: "This browser keeps the conversations about this index, until you delete them. Other people who use this browser can read them.",
    search: "Search names, questions and answers", remove: (name: string) => `Delete ${name}`,
    earlier: (count: number) => `${conversations(count)} kept`,
    size: (count: number, changed: Date) => `${questions(count)} · ${changed.toLocaleString(LANGUAGE, { dateStyle: "medium", timeStyle: "short" })}`,
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
    revoked: "The server does not accept your key any more, for example because it was revoked: ask for another.",
  },
  empty: {
    title: "This index is empty",
    damaged: "This index cannot be opened",
    notBuilt: "It has not been built yet.",
    build: "Unless a run is under way, add documents and start one.",
    askToBuild: "Unless a run is under way, ask the person who runs the server to start one.",
    waiting: "The index appears here by itself as soon as it can be opened.",
  },
  staticPage: {
    part: (drawn: number, all: number) =>
      `This page holds the ${number(drawn)} entities with the most relationships, of ${number(all)} in the index.`,
    documents: (held: number, all: number) =>
      `This page holds the texts of ${number(held)} of ${number(all)} documents.`,
  },
  errors: {
    notOnPage: "This page does not hold that row: open the index with `graphrag-index serve`.",
    noServer: "The server did not answer.",
    waitForServer: "The server does not answer: check that it runs and that you are connected. This page goes on by itself as soon as the server is back.",
    cutOff: "The connection ended before the answer was complete: ask again.",
    unexpected: "Something in this page failed: load the page again.",
    status: (status: number) => `The server answered with status ${status}: try again, or ask the person who runs it.`,
    notInChat: "This view has only the graph: ask the agent for this, or open the explorer of the server.",
    noIndexes: "This key may see no index: ask the person who runs the server.",
    noSuchIndex: (name: string) => `There is no index “${name}” here: choose one above.`,
  },
};

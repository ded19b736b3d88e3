/** The details of a community: its report, its place in the hierarchy, and its members. */

import { useMemo } from "preact/hooks";
import type { Community, CommunityDetails, Report, Statement } from "../api";
import { FormattedText, PassageTitles } from "../parts/FormattedText";
import { CommunityLink, EntityLink, Passage } from "../parts/Link";
import { List, PagedList, Section, usePages } from "../parts/PagedList";
import { Await, useData, useLoaded } from "../parts/useData";
import { useAddress } from "../state";
import { texts } from "../texts";

export function CommunityView({ community }: { community: CommunityDetails }) {
  const { ancestors, child_communities, community: number, has_report, neighbours, title } = community;
  const { data } = useData();
  const report = useLoaded<Report | null>(async (signal) => (has_report ? data.row("reports", number, signal) : null), [number]);
  return (
    <article>
      <h2 dir="auto">{title}</h2>
      <p class="facts">
        <span>{texts.communityNumber(number)}</span>
        <span>{texts.level(community.level)}</span>
        <span>{texts.entities(community.size)}</span>
        {report.value?.rank ? <span>{texts.rank(report.value.rank)}</span> : null}
      </p>
      <OnlyThis number={number} />
      <Await loaded={report}>
        {(found) => (found ? <ReportText report={found} /> : <p class="muted">{texts.evidence.noReport}</p>)}
      </Await>
      <Communities title={texts.evidence.partOf} communities={ancestors} />
      <Communities title={texts.evidence.children} communities={child_communities} />
      <Members number={number} />
      <Communities title={texts.evidence.neighbours} communities={neighbours} />
    </article>
  );
}

/** The report without its title, which is the heading already. */
function ReportText({ report }: { report: Report }) {
  const content = report.full_content || report.summary;
  const titles = useMemo(() => new Map((report.statements ?? []).flatMap(({ sources }) =>
    sources.flatMap(({ text_unit, title }) => (text_unit === null ? [] : [[text_unit, title] as const])))), [report]);
  return (
    <PassageTitles.Provider value={titles}>
      <div class="report"><FormattedText text={content.replace(/^# [^\n]*\n/, "")} /></div>
      <Statements statements={report.statements ?? []} />
    </PassageTitles.Provider>
  );
}

/** The statements of a report, each with the number of documents that state it and their sentences. */
function Statements({ statements }: { statements: Statement[] }) {
  if (!statements.length) return null;
  return (
    <Section title={texts.evidence.statements} count={statements.length}>
      <List rows={statements}>
        {({ n_documents, sources, text }) => (
          <details>
            <summary>
              <span dir="auto">{text}</span>{" "}
              <span class="row-note">{texts.evidence.statedBy(n_documents)}</span>
            </summary>
            {sources.map((span) => <Passage key={`${span.document}-${span.start_char}`} span={span} />)}
          </details>
        )}
      </List>
    </Section>
  );
}

function OnlyThis({ number }: { number: number }) {
  const { address, href } = useAddress();
  const isOnly = address.only === number;
  return (
    <div class="actions">
      <a class="button" href={href({ only: isOnly ? null : number })}>
        {isOnly ? texts.evidence.showAll : texts.evidence.showOnly}
      </a>
    </div>
  );
}

interface CommunitiesProps<Row> { title: string; communities: readonly Row[]; note?: (community: Row) => string }

export function Communities<Row extends Omit<Community, "parent" | "children">>({ title, communities, note }: CommunitiesProps<Row>) {
  if (!communities.length) return null;
  return (
    <Section title={title} count={communities.length}>
      <List rows={communities}>{(community) => <CommunityLink community={community} note={note?.(community)} />}</List>
    </Section>
  );
}

function Members({ number }: { number: number }) {
  const { data } = useData();
  const pages = usePages(
    (cursor, signal) => data.page("entities", { community: number, cursor, limit: 20 }, signal),
    [number],
  );
  return (
    <Section title={texts.evidence.members} count={pages.total}>
      <PagedList pages={pages} empty={texts.none}>{(entity) => <EntityLink entity={entity} />}</PagedList>
    </Section>
  );
}

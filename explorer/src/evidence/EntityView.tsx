/** The details of an entity: what the index knows about it, and where that stands. */

import type { EntityDetails } from "../api";
import { useAsk } from "../ask/conversation";
import { EntityChooser } from "../find/FindBox";
import { Curate } from "../manage/Curate";
import { Passage, RelationshipLink } from "../parts/Link";
import { PagedList, Section, usePages } from "../parts/PagedList";
import { useData } from "../parts/useData";
import { surround, type Surroundings, useAddress } from "../state";
import { texts } from "../texts";
import { Communities } from "./CommunityView";

export function EntityView({ entity }: { entity: EntityDetails }) {
  const { aliases, communities, degree, description, frequency, number, title, type } = entity;
  return (
    <article>
      <h2 dir="auto">{title}</h2>
      <p class="facts">
        {type && <span class="tag">{type}</span>}
        <span>{texts.neighbours(degree)}</span>
        <span>{texts.textUnits(frequency)}</span>
      </p>
      {aliases.length > 0 && <p class="muted" dir="auto">{texts.evidence.otherNames}: {aliases.join(", ")}</p>}
      {description && <p dir="auto">{description}</p>}
      <EntityActions entity={entity} />
      <Curate entity={entity} />
      <Relationships entity={number} />
      <Communities title={texts.evidence.communities} communities={communities} note={({ level }) => texts.level(level)} />
      <Mentions entity={number} />
    </article>
  );
}

function EntityActions({ entity }: { entity: EntityDetails }) {
  const { address: { around }, go, href } = useAddress();
  const ask = useAsk();
  const { data, summary } = useData();
  const question = texts.ask.about(entity.title);
  const { number } = entity;
  const isCentre = around?.kind === "entity" && around.number === number;
  return (
    <div class="actions">
      {!isCentre && <a class="button" href={href({ around: surround("entity", number, around?.pinned) })}>{texts.around.show}</a>}
      {around && !isCentre && <PlaceActions around={around} number={number} />}
      {data.ask && summary.scopes.includes("ask") && (
        <button type="button" onClick={() => ask(question, "ask")}>{texts.ask.aboutThis}</button>
      )}
      <EntityChooser label={texts.path.to} placeholder={texts.path.toPlaceholder}
        onChoose={(other) => go({ path: { from: number, to: other.number }, selection: null })} />
    </div>
  );
}

/** Pin an entity in the picture of what surrounds another thing, or hide it there. */
function PlaceActions({ around, number }: { around: Surroundings; number: number }) {
  const { href } = useAddress();
  const { kind, hidden, pinned } = around;
  const isPinned = pinned.includes(number);
  const others = pinned.filter((one) => one !== number);
  return (
    <>
      <a class="button" aria-current={isPinned ? "true" : undefined}
        href={href({ around: { ...around, pinned: isPinned ? others : [...others, number] } })}>
        {isPinned ? texts.around.unpin : texts.around.pin}
      </a>
      <a class="button" href={href({
        around: { ...around, pinned: others, hidden: [...hidden, number] }, selection: { kind, number: around.number },
      })}>{texts.around.hide}</a>
    </>
  );
}

function Relationships({ entity }: { entity: number }) {
  const { data } = useData();
  const pages = usePages((cursor, signal) => data.relationshipsOf(entity, cursor, signal), [entity]);
  return (
    <Section title={texts.evidence.relationships} count={pages.total}>
      <PagedList pages={pages} empty={texts.evidence.noRelationships}>
        {(relationship) => <RelationshipLink relationship={relationship} from={entity} />}
      </PagedList>
    </Section>
  );
}

function Mentions({ entity }: { entity: number }) {
  const { data } = useData();
  const pages = usePages((cursor, signal) => data.mentionsOf(entity, cursor, signal), [entity]);
  return (
    <Section title={texts.evidence.mentions} count={pages.total}>
      <PagedList pages={pages} empty={texts.evidence.noMentions}>{(span) => <Passage span={span} />}</PagedList>
    </Section>
  );
}

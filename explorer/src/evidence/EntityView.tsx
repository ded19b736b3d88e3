/** The details of an entity: what the index knows about it, and where that stands. */

import type { EntityDetails } from "../api";
import { useAsk } from "../ask/useAsk";
import { EntityChooser } from "../find/EntityChooser";
import { Curate } from "../manage/Curate";
import { CommunityLink, RelationshipLink } from "../parts/Link";
import { PagedList, usePages } from "../parts/PagedList";
import { useData } from "../parts/useData";
import { useAddress } from "../state";
import { texts } from "../texts";
import { Passage } from "./Passage";
import { Section } from "./Section";

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
      {aliases.length > 0 && (
        <p class="muted" dir="auto">{texts.evidence.otherNames}: {aliases.join(", ")}</p>
      )}
      {description && <p dir="auto">{description}</p>}
      <EntityActions entity={entity} />
      <Curate entity={entity} />
      <Relationships entity={number} />
      {communities.length > 0 && (
        <Section title={texts.evidence.communities} count={communities.length}>
          <ul class="list">
            {communities.map((community) => (
              <li key={community.community}>
                <CommunityLink community={community} note={texts.level(community.level)} />
              </li>
            ))}
          </ul>
        </Section>
      )}
      <Mentions entity={number} />
    </article>
  );
}

function EntityActions({ entity }: { entity: EntityDetails }) {
  const { go } = useAddress();
  const ask = useAsk();
  const { data, summary } = useData();
  const question = texts.ask.about(entity.title);
  return (
    <div class="actions">
      {data.ask && summary.scopes.includes("ask") && (
        <button type="button" onClick={() => ask(question, "ask")}>{texts.ask.aboutThis}</button>
      )}
      <EntityChooser label={texts.path.to} placeholder={texts.path.toPlaceholder}
        onChoose={({ number }) => go({ path: { from: entity.number, to: number }, selection: null })} />
    </div>
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
      <PagedList pages={pages} empty={texts.evidence.noMentions}>
        {(span) => <Passage span={span} />}
      </PagedList>
    </Section>
  );
}

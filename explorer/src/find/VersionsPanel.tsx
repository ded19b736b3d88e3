/** The versions of the index; each can be looked at as it was. */

import { Await } from "../parts/Loading";
import { useAddress } from "../parts/useAddress";
import { useData } from "../parts/useData";
import { useLoaded } from "../parts/useLoaded";
import { texts } from "../texts";

export function VersionsPanel() {
  const { data, summary } = useData();
  const { address, href } = useAddress();
  const loaded = useLoaded((signal) => data.versions(signal), [summary.name, summary.version]);
  return (
    <div class="panel-body">
      <p class="muted">{texts.versions.explained}</p>
      <Await loaded={loaded}>
        {(versions) => (
          <ul class="list">
            {versions.map(({ number, date, is_current, workflow }) => {
              const isShown = number === (address.version ?? summary.version);
              return (
                <li key={number}>
                  <a class="row" aria-current={isShown ? "true" : undefined}
                    // Numbers of rows differ between versions, so a selection does not stay.
                    href={href({ version: is_current ? null : number, selection: null, path: null, only: null })}>
                    <span class="row-name">
                      {texts.version(number)}{" "}
                      {is_current && <span class="tag">{texts.versions.current}</span>}
                    </span>
                    <span class="row-note">{[workflow, date.slice(0, 16).replace("T", " ")].filter(Boolean).join(" · ")}</span>
                  </a>
                </li>
              );
            })}
          </ul>
        )}
      </Await>
    </div>
  );
}

/** The panels on the left, in the order of the menu. A part of the page adds its line here. */

import type { ComponentType } from "preact";
import { BrowsePanel } from "../find/BrowsePanel";
import { FilterPanel } from "../find/FilterPanel";
import { VersionsPanel } from "../find/VersionsPanel";
import { texts } from "../texts";

export interface MenuPanel {
  /** The name in the address. */
  name: string;
  title: string;
  component: ComponentType;
  /** Whether the panel stands under "More" instead of among the tabs. */
  isMore?: boolean;
  /** Whether the panel is of use before the first run, when the index has no rows. */
  worksEmpty?: boolean;
}

export const MENU: readonly MenuPanel[] = [
  { name: "browse", title: texts.menu.browse, component: BrowsePanel },
  { name: "filters", title: texts.menu.filters, component: FilterPanel },
  { name: "versions", title: texts.menu.versions, component: VersionsPanel },
];

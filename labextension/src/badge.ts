/** The number of findings, on the sidebar's icon. */

import type { Title, Widget } from '@lumino/widgets';

import { countOf } from './grouping.js';
import type { Group } from './grouping.js';

const COUNT = 'ti-count';
const SEVERITY = 'ti-severity';
const MOST = 99;

/** Lumino writes each entry of a dataset as the attribute `data-…` of the tab, under the very name. */
export function setBadge(title: Title<Widget>, groups: readonly Group[]): void {
  const count = countOf(groups);
  const shown = count > MOST ? `${MOST}+` : String(count);
  const severity = groups[0]?.severity ?? '';
  const { [COUNT]: wasCount, [SEVERITY]: wasSeverity, ...others } = title.dataset;
  if (wasCount === (count ? shown : undefined) && (wasSeverity ?? '') === severity) {
    return;
  }
  title.dataset = count ? { ...others, [COUNT]: shown, [SEVERITY]: severity } : others;
}

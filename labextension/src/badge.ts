/** The number of findings, on the sidebar's icon. */

import type { Title, Widget } from '@lumino/widgets';

import type { Group } from './grouping.js';
import { countOf } from './finding_list.js';

export function setBadge(title: Title<Widget>, groups: readonly Group[]): void {
  const count = countOf(groups);
  const shown = count > 99 ? '99+' : String(count);
  const severity = groups[0]?.severity ?? '';
  if (
    title.dataset['tiCount'] !== (count ? shown : undefined) ||
    title.dataset['tiSeverity'] !== severity
  ) {
    title.dataset = count ? { tiCount: shown, tiSeverity: severity } : {};
  }
}

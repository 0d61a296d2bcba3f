/** The account as it is drawn: by device, by kind, and holders that differ in one index only as one. */

import type { AccountRow } from './message.js';

/** Rows that are shown as one: `losses[0]` to `losses[199]`. */
export interface Group {
  /** Stands for the group as long as the same rows could be in it. */
  key: string;
  path: string;
  kind: string;
  bytes: number;
  rows: AccountRow[];
}

export interface Holding {
  device: string;
  bytes: number;
  /** Bytes by kind, the most first. */
  kinds: [string, number][];
  groups: Group[];
}

// Two elements of a list are still read faster one by one.
const ALIKE = 3;
const INDEX = /\[\d+\]/g;
const NAMES = new Intl.Collator('en', { numeric: true });

/** What each device holds, that with the most first. */
export function holdingsOf(rows: readonly AccountRow[]): Holding[] {
  return [...partsOf(rows, row => row.device)]
    .map(([device, all]) => ({
      device,
      bytes: sum(all),
      kinds: [...partsOf(all, row => row.kind)]
        .map(([kind, some]): [string, number] => [kind, sum(some)])
        .sort((a, b) => b[1] - a[1]),
      groups: groupsOf(all)
    }))
    .sort((a, b) => b.bytes - a.bytes);
}

function groupsOf(rows: readonly AccountRow[]): Group[] {
  const alike = partsOf(rows, row => JSON.stringify([row.path.replace(INDEX, '[…]'), row.kind]));
  return [...alike]
    .flatMap(([key, some]) =>
      some.length < ALIKE
        ? some.map(row => groupOf(`${key} ${row.path}`, row.path, [row]))
        : [groupOf(key, some[0]?.path.replace(INDEX, '[…]') ?? '', some)]
    )
    .sort((a, b) => b.bytes - a.bytes);
}

function groupOf(key: string, path: string, rows: AccountRow[]): Group {
  const ordered = rows.sort((a, b) => b.bytes - a.bytes || NAMES.compare(a.path, b.path));
  return { key, path, kind: ordered[0]?.kind ?? '', bytes: sum(ordered), rows: ordered };
}

function partsOf(
  rows: readonly AccountRow[],
  keyOf: (row: AccountRow) => string
): Map<string, AccountRow[]> {
  const parts = new Map<string, AccountRow[]>();
  for (const row of rows) {
    const key = keyOf(row);
    const part = parts.get(key);
    if (part) {
      part.push(row);
    } else {
      parts.set(key, [row]);
    }
  }
  return parts;
}

function sum(rows: readonly AccountRow[]): number {
  return rows.reduce((bytes, row) => bytes + row.bytes, 0);
}

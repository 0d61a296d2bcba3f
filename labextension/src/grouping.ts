/** Findings of a notebook as they are shown: those of the latest execution of each cell, by pitfall, worst first. */

import type { CellRow, Finding } from './message.js';

/** A finding with the execution that it was found in. */
export interface Found {
  finding: Finding;
  cell: { number: number | null; id: string | null };
}

export interface Group {
  slug: string;
  severity: Finding['severity'];
  found: Found[];
}

const ORDER: Finding['severity'][] = ['error', 'warning', 'hint'];

/** Executions that no later one of the same cell has replaced. */
export function latestOf(cells: readonly CellRow[]): CellRow[] {
  const last = new Map(
    cells.map(cell => [cell.id ?? `number ${cell.number ?? ''} ${cell.began}`, cell])
  );
  return [...last.values()];
}

/** All findings by pitfall. */
export function grouped(cells: readonly CellRow[], early: readonly Found[] = []): Group[] {
  const running = new Set(early.map(one => one.cell.id).filter(id => id !== null));
  const past = latestOf(cells).filter(cell => cell.id === null || !running.has(cell.id));
  const all = [
    ...early,
    ...past.reverse().flatMap(cell => cell.findings.map(finding => ({ finding, cell })))
  ];
  const groups = new Map<string, Group>();
  for (const found of all) {
    const { slug, severity } = found.finding;
    const group = groups.get(slug) ?? { slug, severity, found: [] };
    groups.set(slug, group);
    group.found.push(found);
    group.severity = rank(severity) < rank(group.severity) ? severity : group.severity;
  }
  return [...groups.values()].sort((a, b) => rank(a.severity) - rank(b.severity));
}

function rank(severity: Finding['severity']): number {
  return ORDER.indexOf(severity);
}

/** How many findings there are. */
export function countOf(groups: readonly Group[]): number {
  return groups.reduce((sum, group) => sum + group.found.length, 0);
}

/** Which cell a moment of the chart belongs to. */

import type { CellRow, Running } from './message.js';

export interface Picked {
  number: number | null;
  id: string | null;
}

/**
 * The cell that ran at a moment, or the nearest within some milliseconds: a quick cell is narrower than a pointer.
 *
 * @param now - the end of the chart, where the running cell is
 */
export function cellAt(
  cells: readonly CellRow[],
  running: Running | null,
  now: number,
  at: number,
  slack: number
): Picked | null {
  let found: Picked | null = null;
  let nearest = slack;
  const consider = (cell: Picked, begin: number, end: number): void => {
    const far = Math.max(begin - at, at - end, 0);
    // Of two that are as near, the later: a cell begins where the one before it ends.
    if (far <= nearest) {
      found = { number: cell.number, id: cell.id };
      nearest = far;
    }
  };
  for (const cell of cells) {
    consider(cell, cell.began, cell.began + cell.duration_s * 1000);
  }
  if (running) {
    consider(running, now - running.elapsed_s * 1000, now);
  }
  return found;
}

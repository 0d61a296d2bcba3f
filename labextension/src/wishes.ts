/** Settings that a kernel has to know, and that its record in the page keeps to at once. */

export interface Wishes {
  /** False for no looks at memory. */
  sampling: boolean;
  /** Seconds between two looks. */
  interval_s: number;
  /** False if a running cell is not to be judged. */
  findings: boolean;
  /** Looks that are kept. */
  history: number;
}

/** What a kernel does that was told nothing; the same as in `feed/wishes.py` and in the schema of the settings. */
export const DEFAULTS: Readonly<Wishes> = {
  sampling: true,
  interval_s: 0.5,
  findings: true,
  history: 4000
};

export function isSame(one: Readonly<Wishes>, other: Readonly<Wishes>): boolean {
  return (
    one.sampling === other.sampling &&
    one.interval_s === other.interval_s &&
    one.findings === other.findings &&
    one.history === other.history
  );
}

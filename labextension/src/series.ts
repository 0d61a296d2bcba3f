/** Memory of one device over time, in columns as the chart wants them, in bounded space. */

import type { DeviceMemory, SeriesColumns } from './message.js';

const MOST = 5000;
// A timer is early by a little: looks that are nearer than this share of the interval are left out.
const EARLY = 0.8;

export class Series {
  /** Milliseconds since 1970, rising. */
  at: number[] = [];
  /** Bytes in use; null where looks are missing. */
  allocated: (number | null)[] = [];
  /** Bytes that the allocator has taken from the device; null where it says nothing. */
  reserved: (number | null)[] = [];
  limit: number | null = null;
  peak: number | null = null;

  constructor(
    readonly device: string,
    private most = MOST
  ) {}

  /** So many looks are kept from now on. */
  keep(most: number): void {
    this.most = most;
    while (this.at.length > most) {
      this.thin();
    }
  }

  /** The latest bytes in use. */
  get latest(): number | null {
    return this.allocated.at(-1) ?? null;
  }

  /** One more look; what is older than the latest came late, what is too near is more than was wished for. */
  add(at: number, memory: DeviceMemory, gap: boolean, interval_s = 0): void {
    const last = this.at.at(-1) ?? 0;
    if (at <= last || at - last < EARLY * interval_s * 1000) {
      return;
    }
    if (gap && this.at.length > 0) {
      this.push(at - 1, null, null);
    }
    this.push(at, memory.allocated, memory.reserved);
    this.limit = memory.limit;
    this.peak = memory.peak;
    if (this.at.length > Math.min(this.most, MOST)) {
      this.thin();
    }
  }

  /** All of a history, which replaces what is here up to its end. */
  load(columns: SeriesColumns): void {
    const newer = this.after(columns.at.at(-1) ?? 0);
    this.at = [];
    this.allocated = [];
    this.reserved = [];
    const gaps = new Set(columns.gaps);
    columns.at.forEach((at, index) => {
      if (at > (this.at.at(-1) ?? 0)) {
        if (gaps.has(index) && index > 0) {
          this.push(at - 1, null, null);
        }
        this.push(at, columns.allocated[index] ?? null, columns.reserved[index] ?? null);
      }
    });
    newer.forEach(point => {
      this.push(...point);
    });
    this.limit ??= columns.limit;
    this.peak ??= columns.peak;
  }

  private push(at: number, allocated: number | null, reserved: number | null): void {
    this.at.push(at);
    this.allocated.push(allocated);
    this.reserved.push(reserved);
  }

  private after(at: number): [number, number | null, number | null][] {
    return this.at
      .map((one, i): [number, number | null, number | null] => [
        one,
        this.allocated[i] ?? null,
        this.reserved[i] ?? null
      ])
      .filter(([one]) => one > at);
  }

  /** Drops every second point of the older half; of two, the higher stays, so that peaks stay to be seen. */
  private thin(): void {
    const half = Math.floor(this.at.length / 2);
    const keep = (i: number): boolean => {
      const other = i ^ 1;
      if (i >= half || other >= half) {
        return true;
      }
      const [mine, its] = [this.allocated[i] ?? 0, this.allocated[other] ?? 0];
      return mine > its || (mine === its && i < other);
    };
    const kept = this.at.map((_, i) => keep(i));
    this.at = this.at.filter((_, i) => kept[i]);
    this.allocated = this.allocated.filter((_, i) => kept[i]);
    this.reserved = this.reserved.filter((_, i) => kept[i]);
  }
}

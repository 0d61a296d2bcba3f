/** What is known of one kernel: one load of the extension after the other, each in bounded space. */

import type {
  Account,
  CellRow,
  Finding,
  Freed,
  Holders,
  Message,
  Running,
  State
} from './message.js';
import { grouped } from './grouping.js';
import type { Group } from './grouping.js';
import { rateOf } from './rate.js';
import type { Moment, Rate } from './rate.js';
import { Series } from './series.js';
import { DEFAULTS } from './wishes.js';
import type { Wishes } from './wishes.js';

const CELLS = 500;
const MOMENTS = 60;
const DEVICES = 64;
const DEAD = 100;
const EMPTY: State = { modules: [], optimizers: [], complete: true };

/** A part of the panel that a message may change. */
export type Part = 'memory' | 'cells' | 'findings' | 'state' | 'account' | 'all';

export class KernelRecord {
  /** Which load of the extension this is about; empty while nothing was heard. */
  run = '';
  series = new Map<string, Series>();
  cells: CellRow[] = [];
  state: State = EMPTY;
  running: Running | null = null;
  /** Certain findings of the running cell. */
  early: Finding[] = [];
  account: Account | null = null;
  holders: Holders | null = null;
  /** What came free before the latest account. */
  freed: Freed | null = null;
  refused = false;
  wishes: Readonly<Wishes> = DEFAULTS;
  private awaited = false;
  private grouping: {
    last: CellRow | undefined;
    count: number;
    early: Finding[];
    groups: Group[];
  } | null = null;
  private complete = false;
  private moments: Moment[] = [];
  private dead: string[] = [];

  /** True while a kernel is heard. */
  get live(): boolean {
    return this.run !== '';
  }

  /** Speed and growth of the running cell. */
  get rate(): Rate {
    return rateOf(this.moments);
  }

  /** Keeps to these settings at once; a kernel that is busy may hear of them later. */
  heed(wishes: Wishes): void {
    this.wishes = wishes;
    for (const one of this.series.values()) {
      one.keep(wishes.history);
    }
    if (!wishes.findings) {
      this.early = [];
    }
  }

  /** The findings that count now, those of the running cell included. */
  get groups(): Group[] {
    const { cells, early, running } = this;
    const of = this.grouping;
    // Cells and findings are replaced, never changed: the same ones have the same groups.
    if (of?.last !== cells.at(-1) || of?.count !== cells.length || of.early !== early) {
      const cell = { number: running?.number ?? null, id: running?.id ?? null };
      const groups = grouped(
        cells,
        early.map(finding => ({ finding, cell }))
      );
      this.grouping = { last: cells.at(-1), count: cells.length, early, groups };
    }
    return this.grouping?.groups ?? [];
  }

  /** Takes a message; says what it changed. */
  apply(message: Message): Part[] {
    if (this.dead.includes(message.run)) {
      return [];
    }
    const fresh = message.run !== this.run;
    if (fresh) {
      // Not dead: whoever else can send in this kernel must not silence the inspector by naming another run.
      this.begin(message.run);
    }
    const parts = this.take(message);
    return fresh ? ['all'] : parts;
  }

  /** The kernel was restarted or is gone: late messages of it count no more. */
  end(): void {
    if (this.run !== '') {
      this.dead = [...this.dead, this.run].slice(-DEAD);
    }
    this.begin('');
  }

  /** Forgets what was heard so far. */
  clear(): void {
    this.series = new Map();
    this.cells = [];
    this.running = null;
    this.early = [];
    this.moments = [];
    this.account = null;
    this.holders = null;
    this.freed = null;
    this.refused = false;
  }

  /** The device that matters most: the accelerator that is used most, or else the host. */
  mainDevice(): string {
    const used = [...this.series.values()].filter(one => one.device !== 'host');
    used.sort((a, b) => (b.latest ?? 0) - (a.latest ?? 0));
    return used[0]?.device ?? 'host';
  }

  private begin(run: string): void {
    this.run = run;
    this.complete = false;
    this.state = EMPTY;
    this.clear();
  }

  private take(message: Message): Part[] {
    switch (message.op) {
      case 'sample':
        return this.takeSample(message);
      case 'cell':
        this.running = null;
        this.early = [];
        this.moments = [];
        this.addCell(message.cell);
        this.state = message.state;
        return ['memory', 'cells', 'findings', 'state'];
      case 'history':
        return this.takeHistory(message);
      case 'account':
        // The account that follows what was freed shows what is left; the next one is about something else.
        this.freed = this.awaited ? this.freed : null;
        this.awaited = false;
        this.account = message;
        this.holders = null;
        this.refused = false;
        return ['account'];
      case 'freed':
        this.freed = message;
        this.awaited = true;
        return [];
      case 'holders':
        this.holders = message;
        this.refused = false;
        return ['account'];
      case 'muted':
        return [];
      case 'refused':
        this.refused = true;
        return ['account'];
      case 'bye':
        this.end();
        return ['all'];
    }
  }

  private takeSample(message: Message & { op: 'sample' }): Part[] {
    const { sampling, interval_s, findings } = this.wishes;
    for (const device of sampling ? message.devices : []) {
      const spacing = message.cell ? interval_s : 0;
      this.seriesOf(device.device).add(message.at, device, message.gap, spacing);
    }
    const early = message.cell && findings ? message.findings : [];
    const changed = JSON.stringify(early) !== JSON.stringify(this.early);
    this.early = changed ? early : this.early;
    if (message.cell?.number !== this.running?.number) {
      this.moments = [];
    }
    this.running = message.cell;
    this.note(message);
    return changed ? ['memory', 'findings'] : ['memory'];
  }

  private takeHistory(message: Message & { op: 'history' }): Part[] {
    if (this.complete && !message.complete) {
      return [];
    }
    this.complete = message.complete;
    for (const columns of message.series) {
      this.seriesOf(columns.device).load(columns);
    }
    const newer = this.cells.filter(cell => cell.began > (message.cells.at(-1)?.began ?? 0));
    this.cells = [...message.cells, ...newer].slice(-CELLS);
    if (newer.length === 0) {
      this.state = message.state;
    }
    return ['all'];
  }

  private addCell(cell: CellRow): void {
    this.cells.push(cell);
    if (this.cells.length > CELLS) {
      this.cells.shift();
    }
  }

  private seriesOf(device: string): Series {
    let found = this.series.get(device);
    if (!found) {
      found = new Series(device, this.wishes.history);
      if (this.series.size < DEVICES) {
        this.series.set(device, found);
      }
    }
    return found;
  }

  private note(message: Message & { op: 'sample' }): void {
    const device = message.devices.find(one => one.device === this.mainDevice());
    if (!message.cell || !device) {
      return;
    }
    const { allocated, limit } = device;
    this.moments.push({ at: message.at, steps: message.cell.steps, allocated, limit });
    this.moments = this.moments.slice(-MOMENTS);
  }
}

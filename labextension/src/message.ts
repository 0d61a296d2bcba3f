/**
 * What the kernel sends. The kernel's side is `torch_inspector/notebook/feed/messages.py`, and
 * `messages.schema.json` beside it describes both; the tests of both languages hold to it.
 */

import {
  Malformed,
  fields,
  finite,
  flag,
  list,
  moment,
  oneOf,
  orNull,
  span,
  text,
  whole
} from './read.js';
import type { Read } from './read.js';
import type { Wishes } from './wishes.js';

/** Raised together with that of the kernel's side. */
export const VERSION = 1;
/** The kernel's comm: registered there, never opened. */
export const TARGET = 'torch_inspector';
/** Its fixed id. */
export const COMM_ID = 'torch_inspector.feed';

const DEVICES = 64;
const POINTS = 5000;

const finding = fields({
  slug: text(),
  severity: oneOf('error', 'warning', 'hint'),
  message: text(1000),
  subject: text(),
  fix: text(2000),
  /** The fix where it is no code to paste; else empty. */
  fix_sentence: orNull(text(1000)),
  cell: orNull(whole),
  line: orNull(whole),
  code: orNull(text(2000))
});

const cellRow = fields({
  number: orNull(whole),
  id: orNull(text()),
  began: moment,
  duration_s: span,
  error: orNull(text()),
  steps: whole,
  memory: list(fields({ device: text(), before: whole, after: whole, peak: whole }), DEVICES),
  findings: list(finding, 50)
});

const running = fields({
  number: orNull(whole),
  id: orNull(text()),
  elapsed_s: span,
  steps: whole
});

const device = fields({
  device: text(),
  allocated: whole,
  reserved: orNull(whole),
  peak: orNull(whole),
  limit: orNull(whole)
});

const series = fields({
  device: text(),
  limit: orNull(whole),
  peak: orNull(whole),
  at: list(moment, POINTS),
  allocated: list(orNull(whole), POINTS),
  reserved: list(orNull(whole), POINTS),
  gaps: list(whole, POINTS)
});

const module = fields({
  path: text(),
  kind: text(),
  training: flag,
  awake: whole,
  asleep: whole,
  devices: list(text(), DEVICES),
  parameters: whole,
  trainable: whole,
  bytes: whole
});

const optimizer = fields({
  path: text(),
  kind: text(),
  learning_rate: orNull(finite),
  parameters: whole,
  state_bytes: whole,
  gradient_bytes: whole
});

const state = fields({
  modules: list(module, 100),
  optimizers: list(optimizer, 100),
  complete: flag
});

const freeItem = oneOf('outputs', 'cycles', 'cache', 'exception');

const scope = oneOf('line', 'cell', 'notebook', 'always');

const accountRow = fields({
  path: text(),
  kind: text(),
  device: text(),
  bytes: whole,
  pieces: whole,
  also: list(text(), 10),
  free: orNull(freeItem),
  cell: orNull(whole)
});

const total = fields({
  device: text(),
  allocated: orNull(whole),
  reserved: orNull(whole),
  others: orNull(whole)
});

const BODIES = {
  sample: fields({
    cell: orNull(running),
    devices: list(device, DEVICES),
    gap: flag,
    findings: list(finding, 50)
  }),
  cell: fields({ cell: cellRow, state }),
  history: fields({
    complete: flag,
    series: list(series, DEVICES),
    cells: list(cellRow, 500),
    state
  }),
  account: fields({
    rows: list(accountRow, 300),
    free: list(fields({ item: freeItem, what: text(), bytes: whole, why: text() }), 4),
    totals: list(total, DEVICES),
    notes: list(text(), 10),
    duration_s: span
  }),
  holders: fields({
    path: text(),
    rows: list(fields({ path: text(), kind: text(), fix: text() }), 300),
    gone: flag,
    unknown: orNull(flag)
  }),
  freed: fields({ item: freeItem, path: text(), bytes: whole }),
  refused: fields({ ask: oneOf('account', 'holders', 'free') }),
  muted: fields({
    slug: text(),
    scope,
    cell: orNull(whole),
    line: orNull(whole),
    on: flag,
    path: text(),
    error: text()
  }),
  bye: fields({})
};

const head = fields({ v: finite, run: text(64), op: text(40), at: moment });

type Bodies = { [O in keyof typeof BODIES]: Read<(typeof BODIES)[O]> };

/** One message, by its `op`. */
export type Message = {
  [O in keyof Bodies]: { run: string; at: number; op: O } & Bodies[O];
}[keyof Bodies];

export type Finding = Read<typeof finding>;
export type CellRow = Read<typeof cellRow>;
export type Running = Read<typeof running>;
export type DeviceMemory = Read<typeof device>;
export type SeriesColumns = Read<typeof series>;
export type State = Read<typeof state>;
export type ModuleRow = Read<typeof module>;
export type OptimizerRow = Read<typeof optimizer>;
export type Account = Bodies['account'];
export type AccountRow = Read<typeof accountRow>;
export type Holders = Bodies['holders'];
export type FreeItem = Read<typeof freeItem>;
export type Freed = Bodies['freed'];
export type Muted = Bodies['muted'];
/** How far the silence about a pitfall goes. */
export type Scope = Read<typeof scope>;

/** What the sidebar asks for. */
export type Request =
  | { v: typeof VERSION; ask: 'hello' | 'account' }
  | { v: typeof VERSION; ask: 'holders'; path: string }
  | { v: typeof VERSION; ask: 'free'; item: FreeItem; path: string }
  | {
      v: typeof VERSION;
      ask: 'mute';
      slug: string;
      scope: Scope;
      cell: number | null;
      line: number | null;
      on: boolean;
    }
  | ({ v: typeof VERSION; ask: 'settings' } & Wishes);

/**
 * Reads one message.
 *
 * Returns null for one of a kind that this version does not know; throws `Malformed` for one that is not what it says.
 */
export function readMessage(data: unknown): Message | null {
  const { v, run, op, at } = head(data, 'message');
  if (v !== VERSION) {
    throw new Malformed('the kernel speaks another version');
  }
  if (!Object.hasOwn(BODIES, op)) {
    return null;
  }
  const body = BODIES[op as keyof typeof BODIES](data, op);
  return { ...body, run, at, op } as Message;
}

/** A run as an output holds it: written by a kernel, or by anybody who could write the file. */

import { Malformed, fields, finite, list, orNull, text, whole } from './read.js';
import type { Read } from './read.js';

export const RUN_MIME = 'application/vnd.torch-inspector.run+json';
const VERSION = 1;
// More than any card that a kernel makes.
const LONGEST_CARD = 1_000_000;
const FINDINGS = 50;
const CODE = 2000;
const MODEL_ID = /^[0-9a-f-]{1,64}$/;

const place = fields({
  slug: text(),
  cell: orNull(whole),
  line: orNull(whole),
  held: orNull(text()),
  code: text(CODE),
  evidence: list(fields({ unit: text() }), FINDINGS)
});

const head = fields({
  version: finite,
  session: text(64),
  cell: orNull(whole),
  findings: list(place, FINDINGS),
  card: text(LONGEST_CARD),
  model_id: orNull(text())
});

/** What a card needs to act on one of its findings. */
export type Found = Read<typeof place>;

export interface SavedRun {
  /** Which load of the extension made it. */
  session: string;
  cell: number | null;
  /** In the order of the card. */
  findings: Found[];
  card: unknown;
  /** The widget of the same card, in the kernel of that session; null if there is none. */
  modelId: string | null;
}

/** Reads it; null for what is none, or of another version. */
export function readRun(data: unknown): SavedRun | null {
  try {
    const { version, session, cell, findings, card, model_id } = head(data, 'run');
    if (version !== VERSION) {
      return null;
    }
    const modelId = MODEL_ID.test(model_id ?? '') ? model_id : null;
    return { session, cell, findings, card: JSON.parse(card) as unknown, modelId };
  } catch (error) {
    if (error instanceof Malformed || error instanceof SyntaxError) {
      return null;
    }
    throw error;
  }
}

/** True if the finding is about memory. */
export function isAboutMemory({ evidence }: Found): boolean {
  return evidence.some(({ unit }) => unit === 'bytes');
}

/** The path of the object that keeps the memory; empty if none leads to the one that is meant. */
export function heldName(found: Found): string {
  return isAboutMemory(found) ? (found.held ?? '') : '';
}

/** The comment that silences a pitfall at a line: where in a cell it belongs, as the kernel reads it. */

import { linesOf } from './python_lines.js';

/** What to put in place of the characters from `start` to `end`. */
export interface Edit {
  start: number;
  end: number;
  text: string;
}

/** Why nothing is to be written. */
export type WhyNot = 'there' | 'gone' | 'string' | 'backslash' | 'unsure';

// `session.py` reads the first of a line.
const IGNORE = /#\s*torchcheck:\s*ignore(?:\[([\p{L}\p{M}\p{N}_\s,-]*)\])?/u;
// The kernel cuts longer lines than this, and writes out what cannot be seen.
const CUT = 1900;
const UNSEEN = /\p{Cc}|\p{Cf}|\p{Cs}|[\u2028\u2029]/gu;
const WRITTEN_OUT = /\\(?:x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})/g;

/** What is seen of a line. */
function seenOf(text: string): string {
  const seen = text.replace(/\s+/g, ' ').replace(UNSEEN, '').replace(WRITTEN_OUT, '');
  return seen.trim().slice(0, CUT);
}

function linesLike(source: string, code: string): number[] {
  const seen = seenOf(code);
  return source.split('\n').flatMap((text, i) => (seenOf(text) === seen ? [i + 1] : []));
}

/** The line that reads like this, counted from 1: of several the one nearest to where it was; null if there is none. */
export function nearestLine(source: string, line: number, code: string): number | null {
  const found = linesLike(source, code);
  found.sort((a, b) => Math.abs(a - line) - Math.abs(b - line));
  return found[0] ?? null;
}

/** The line itself, or else the only one that reads like this. */
function sameLine(source: string, line: number, code: string): number | null {
  const found = linesLike(source, code);
  return found.includes(line) ? line : found.length === 1 ? (found[0] ?? null) : null;
}

/** How to have it silent about a pitfall at a line. */
export function ignoring(
  source: string,
  number: number,
  code: string,
  slug: string
): Edit | WhyNot {
  const line = code ? sameLine(source, number, code) : null;
  if (line === null) {
    return 'gone';
  }
  const texts = source.split('\n');
  const start = texts.slice(0, line - 1).reduce((sum, text) => sum + text.length + 1, 0);
  const text = texts[line - 1] ?? '';
  const { end, comment } = linesOf(source)[line - 1] ?? { end: 'unsure', comment: null };
  if (end !== 'code') {
    return end;
  }
  const known = IGNORE.exec(text);
  if (!known) {
    const written = text.trimEnd().length;
    return {
      start: start + written,
      end: start + text.length,
      text: `  # torchcheck: ignore[${slug}]`
    };
  }
  if (comment === null || known.index < comment) {
    return 'unsure';
  }
  const slugs = (known[1] ?? '').split(',').map(one => one.trim());
  if (slugs.includes(slug) || slugs.every(one => one === '')) {
    return 'there';
  }
  const close = start + known.index + known[0].length - 1;
  return { start: close, end: close, text: `, ${slug}` };
}

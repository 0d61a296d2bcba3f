/** What stands at the end of each line of a cell: whether a comment there is one to Python. */

/** `unsure` of lines that are no plain Python, and of all lines of a cell that is not understood. */
export type End = 'code' | 'string' | 'backslash' | 'unsure';

export interface Line {
  end: End;
  /** Where its comment begins in it; null if it has none. */
  comment: number | null;
}

/** Inside of what a character stands: a string, braces in one, the format behind what they hold. */
type Frame =
  | { kind: 'string'; quote: string; formatted: boolean }
  | { kind: 'braces'; depth: number }
  | { kind: 'format' };

const WORD = /[\p{L}\p{M}\p{N}_]+/uy;
const QUOTE = /'''|"""|'|"/y;
const PREFIX = /^(?:[bfrtu]|br|rb|fr|rf|rt|tr)$/i;
// At some of these the kernel breaks lines, and Python does not.
const OTHER_BREAKS = /(?![\t\n])\p{Cc}|[\u2028\u2029]/u;
// `%time f()`, `!ls`, `?f`, `,f a b`, `;f a b`, `/f a b`; `files = !ls`, `value = %magic`.
const MAGIC = /^\s*(?:[%!?,;/]|[^=#'"]+=\s*[%!])/;
// `time f()`, `f a`: IPython makes a magic or a call of it.
const TWO_WORDS = /^\s*([\p{L}_][\p{L}\p{N}_]*)[ \t]+(?:['"]|([\p{L}\p{N}_]+))/u;
const BEFORE = wordsOf(
  'and as assert async await case class def del elif else except finally for from global if import in is lambda match ' +
    'nonlocal not or raise return try type while with yield'
);
const BETWEEN = wordsOf('and as else for from if import in is not or');

function wordsOf(text: string): ReadonlySet<string> {
  return new Set(text.split(' '));
}

/** True of a line that IPython takes for its own, where a statement begins. */
function isForeign(line: string): boolean {
  const [, first, second] = TWO_WORDS.exec(line) ?? [];
  const isCall = first !== undefined && !BEFORE.has(first) && !BETWEEN.has(second ?? '');
  return isCall || MAGIC.test(line);
}

/** The lines of a cell. */
export function linesOf(source: string): Line[] {
  const lines = OTHER_BREAKS.test(source) ? null : new Reading(source).lines();
  return lines ?? source.split('\n').map(() => ({ end: 'unsure', comment: null }));
}

class Reading {
  private readonly read: Line[] = [];
  private readonly frames: Frame[] = [];
  private at = 0;
  /** Where this line begins. */
  private begin = 0;
  private comment: number | null = null;
  /** Open brackets outside of strings. */
  private readonly brackets = { depth: 0 };
  /** True in a line with a question to IPython, `f?`. */
  private asks = false;
  private lost = false;

  constructor(private readonly source: string) {}

  /** Null if it is not understood, or not whole. */
  lines(): Line[] | null {
    const { source, frames } = this;
    this.beginStatement();
    while (this.at < source.length && !this.lost) {
      const inside = frames.at(-1);
      if (inside?.kind === 'string') {
        this.stepInString(inside);
      } else if (inside?.kind === 'format') {
        this.stepInFormat();
      } else {
        this.stepInCode(inside ?? null);
      }
    }
    if (this.lost || frames.length > 0 || this.brackets.depth !== 0) {
      return null;
    }
    if (this.read.length < source.split('\n').length) {
      this.endLine('code');
    }
    return this.read;
  }

  private get char(): string {
    return this.source[this.at] ?? '';
  }

  private endLine(end: End): void {
    this.read.push({ end: this.asks ? 'unsure' : end, comment: this.comment });
    this.comment = null;
    this.asks = false;
    this.at += 1;
    this.begin = this.at;
  }

  private match(pattern: RegExp): string {
    pattern.lastIndex = this.at;
    return pattern.exec(this.source)?.[0] ?? '';
  }

  /** The rest of the line that it stands in. */
  private rest(): string {
    const end = this.source.indexOf('\n', this.at);
    return this.source.slice(this.at, end < 0 ? undefined : end);
  }

  /** Goes over lines that are not Python's. */
  private beginStatement(): void {
    let goesOn = false;
    while (this.at < this.source.length && (goesOn || isForeign(this.rest()))) {
      const line = this.rest();
      goesOn = line.endsWith('\\');
      this.at += line.length;
      this.endLine('unsure');
    }
  }

  private stepInCode(braces: (Frame & { kind: 'braces' }) | null): void {
    const { char } = this;
    const word = this.match(WORD);
    this.at += word.length;
    const quote = this.match(QUOTE);
    if (quote && (!word || PREFIX.test(word))) {
      this.at += quote.length;
      this.frames.push({ kind: 'string', quote, formatted: /[ft]/i.test(word) });
    } else if (!word) {
      this.stepInSigns(char, braces);
    }
  }

  private stepInSigns(char: string, braces: (Frame & { kind: 'braces' }) | null): void {
    if (char === '#') {
      this.comment = this.at - this.begin;
      this.at += this.rest().length;
    } else if (char === '\\' && this.source[this.at + 1] === '\n') {
      this.at += 1;
      this.endLine('backslash');
    } else if (char === '\n') {
      this.endLine(braces ? 'string' : 'code');
      if (!braces && this.brackets.depth === 0) {
        this.beginStatement();
      }
    } else if (braces?.depth === 0 && char === '}') {
      this.frames.pop();
      this.at += 1;
    } else if (braces?.depth === 0 && char === ':') {
      this.frames.push({ kind: 'format' });
      this.at += 1;
    } else {
      this.count(char, braces ?? this.brackets);
      this.asks ||= char === '?';
      this.lost ||= char === '\\' || char === '$' || char === '`';
      this.at += 1;
    }
  }

  private count(char: string, where: { depth: number }): void {
    where.depth += '([{'.includes(char) ? 1 : ')]}'.includes(char) ? -1 : 0;
    this.lost ||= where.depth < 0;
  }

  private stepInString({ quote, formatted }: Frame & { kind: 'string' }): void {
    const { char, source, at } = this;
    const next = source[at + 1] ?? '';
    if (source.startsWith(quote, at)) {
      this.frames.pop();
      this.at += quote.length;
    } else if (char === '\n') {
      // One of a line must have ended before.
      this.lost ||= quote.length === 1;
      this.endLine('string');
    } else if (char === '\\' && next === '\n') {
      this.at += 1;
      this.endLine('string');
    } else if (char === '\\' && !(formatted && next === '{')) {
      this.at += 2;
    } else if (formatted && char === '{' && next !== '{') {
      this.frames.push({ kind: 'braces', depth: 0 });
      this.at += 1;
    } else {
      this.at += formatted && char === '{' ? 2 : 1;
    }
  }

  private stepInFormat(): void {
    if (this.char === '{') {
      this.frames.push({ kind: 'braces', depth: 0 });
    } else if (this.char === '}') {
      this.frames.splice(-2);
    } else if (this.char === '\n') {
      this.endLine('string');
      return;
    }
    this.at += 1;
  }
}

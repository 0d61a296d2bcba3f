/**
 * Readers for data from outside: each takes anything and returns what it was told to expect, or throws.
 * What they return is made of new objects with known fields, so nothing that came along (getters, prototype keys,
 * fields of other names) goes further.
 */

// The year 2100, and a century.
const LATEST_MS = 4_102_444_800_000;
const LONGEST_S = 3_155_760_000;

/** Thrown for data of another form; its message names the place and never quotes the data. */
export class Malformed extends Error {}

/** Reads one value; `at` says where it stood. */
export type Reader<T> = (value: unknown, at: string) => T;

/** What a reader returns. */
export type Read<R> = R extends Reader<infer T> ? T : never;

/** A string, cut to a length. */
export function text(limit = 200): Reader<string> {
  return (value, at) => {
    if (typeof value !== 'string') {
      throw new Malformed(`${at} is no text`);
    }
    return value.slice(0, limit);
  };
}

/** A whole number from 0 that JavaScript counts exactly. */
export const whole: Reader<number> = (value, at) => {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0) {
    throw new Malformed(`${at} is no count`);
  }
  return value;
};

/** A finite number. */
export const finite: Reader<number> = (value, at) => {
  if (typeof value !== 'number' || !Number.isFinite(value)) {
    throw new Malformed(`${at} is no number`);
  }
  return value;
};

/** Milliseconds since 1970, in this century or before: later ones no chart can name. */
export const moment: Reader<number> = (value, at) => {
  const read = whole(value, at);
  if (read > LATEST_MS) {
    throw new Malformed(`${at} is no time`);
  }
  return read;
};

/** Seconds that something lasted. */
export const span: Reader<number> = (value, at) => {
  const read = finite(value, at);
  if (read < 0 || read > LONGEST_S) {
    throw new Malformed(`${at} is no duration`);
  }
  return read;
};

/** True or false. */
export const flag: Reader<boolean> = (value, at) => {
  if (typeof value !== 'boolean') {
    throw new Malformed(`${at} is neither true nor false`);
  }
  return value;
};

/** One of some words. */
export function oneOf<W extends string>(...words: W[]): Reader<W> {
  return (value, at) => {
    const found = words.find(word => word === value);
    if (found === undefined) {
      throw new Malformed(`${at} is none of the known words`);
    }
    return found;
  };
}

/** The same or null; what is missing counts as null. */
export function orNull<T>(reader: Reader<T>): Reader<T | null> {
  return (value, at) => (value === null || value === undefined ? null : reader(value, at));
}

/** A list of so many at most; more is not read. */
export function list<T>(reader: Reader<T>, most: number): Reader<T[]> {
  return (value, at) => {
    if (!Array.isArray(value)) {
      throw new Malformed(`${at} is no list`);
    }
    return value.slice(0, most).map((item, index) => reader(item, `${at}[${index}]`));
  };
}

/** An object with these fields of its own; others are left out. */
export function fields<F extends Record<string, Reader<unknown>>>(
  readers: F
): Reader<{ [K in keyof F]: Read<F[K]> }> {
  return (value, at) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      throw new Malformed(`${at} is no object`);
    }
    const own = value as Record<string, unknown>;
    const read = Object.entries(readers).map(([name, reader]) => {
      const field = Object.hasOwn(own, name) ? own[name] : undefined;
      return [name, reader(field, `${at}.${name}`)];
    });
    return Object.fromEntries(read) as { [K in keyof F]: Read<F[K]> };
  };
}

/** Messages that both languages read, and the schema that describes them. */

import { readFileSync, readdirSync } from 'node:fs';

const MESSAGES = new URL('../../tests/messages/', import.meta.url);
const SCHEMA = new URL('../../torch_inspector/notebook/feed/messages.schema.json', import.meta.url);

const json = url => JSON.parse(readFileSync(url, 'utf8'));

export const schema = json(SCHEMA);
/** Name and message of each file. */
export const messages = readdirSync(MESSAGES)
  .filter(name => name.endsWith('.json'))
  .sort()
  .map(name => [name, json(new URL(name, MESSAGES))]);

/** The message of one file. */
export const sample = name =>
  structuredClone(messages.find(([file]) => file === `${name}.json`)[1]);

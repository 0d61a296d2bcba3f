/** Writes the table of pages: one import per page of a pitfall, so that they are bundled with the application. */

import { readdirSync, writeFileSync } from 'node:fs';

const FROM = new URL('../../torch_inspector/pitfalls/', import.meta.url);
const TO = new URL('../src/page_texts.ts', import.meta.url);

const pages = readdirSync(FROM, { recursive: true })
  .map(path => path.replaceAll('\\', '/'))
  .filter(path => path.endsWith('.md'))
  .sort();
const slugOf = path => path.replace(/^.*\//, '').replace(/\.md$/, '').replaceAll('_', '-');
const lines = [
  '/** Written by `npm run pages`. */',
  ...pages.map((path, i) => `import page${i} from '../../torch_inspector/pitfalls/${path}';`),
  'export const TEXTS: ReadonlyMap<string, string> = new Map([',
  ...pages.map((path, i) => `  ['${slugOf(path)}', page${i}],`),
  ']);',
  ''
];
writeFileSync(TO, lines.join('\n'));

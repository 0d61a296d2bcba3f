/** What is silent now, in words: how far it goes, and how long. */

import type { TranslationBundle } from '@jupyterlab/translation';

import type { Muted, Scope } from './message.js';

export function saidOf({ scope, on, path, error }: Muted, trans: TranslationBundle): string {
  if (error) {
    return trans.__('Not done: %1.', error);
  }
  if (!on) {
    return trans.__('It is reported again.');
  }
  const words: Record<Scope, string> = {
    line: trans.__('Silent at this line, until it is edited or the kernel restarts.'),
    cell: trans.__('Silent in this cell, until the kernel restarts.'),
    notebook: trans.__('Silent in this notebook, which keeps that in its file.'),
    always: trans.__('Silent in every notebook: %1 says so.', path)
  };
  return words[scope];
}

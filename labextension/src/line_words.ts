/** What is said of a line of a cell that was gone to, or written into. */

import type { TranslationBundle } from '@jupyterlab/translation';

import type { Arrival, Writing } from './subject.js';

/** Empty if it is there. */
export function arrivalIn(arrival: Arrival, trans: TranslationBundle): string {
  const words: Record<Arrival, string> = {
    there: '',
    'no cell': trans.__('This cell is not in the notebook any more.'),
    'no line': trans.__('This line is not in its cell any more.')
  };
  return words[arrival];
}

export function writingIn(writing: Writing, trans: TranslationBundle): string {
  const words: Record<Writing, string> = {
    written: trans.__('The comment is in the line.'),
    there: trans.__('Such a comment is in the line already.'),
    locked: trans.__('The cell cannot be edited: nothing was written.'),
    gone: trans.__('The line is another one now: nothing was written.'),
    backslash: trans.__('No comment may stand behind a backslash: nothing was written.'),
    string: trans.__('The line ends inside of a string: nothing was written.'),
    unsure: trans.__('Python might not take it for a comment there: nothing was written.')
  };
  return words[writing];
}

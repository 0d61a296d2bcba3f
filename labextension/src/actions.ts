/** What a part of the panel can have done when it is clicked, and the words it says. */

import type { TranslationBundle } from '@jupyterlab/translation';

import type { FreeItem, Request } from './message.js';
import type { Target } from './subject.js';

/** Something to let go of: an item of the account's plan, or of old outputs the one of a path. */
export interface Freeing {
  item: FreeItem;
  path: string;
}

export interface Actions {
  readonly trans: TranslationBundle;
  jump(target: Target): void;
  openPage(slug: string): void;
  ask(request: Request): void;
  /** Asks the user, and then the kernel. */
  free(what: Freeing): void;
  copy(text: string): void;
  openSettings(): void;
  load(): void;
}

/** What a part of the panel can have done when it is clicked, and the words it says. */

import type { TranslationBundle } from '@jupyterlab/translation';

import type { Request } from './message.js';
import type { Target } from './subject.js';

export interface Actions {
  readonly trans: TranslationBundle;
  jump(target: Target): void;
  openPage(slug: string): void;
  ask(request: Request): void;
  load(): void;
}

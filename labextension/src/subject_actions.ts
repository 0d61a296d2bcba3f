/** Carries out for the notebook in front what is clicked in the panel. */

import { Notification } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';

import type { Actions } from './actions.js';
import type { Request } from './message.js';
import type { Pages } from './pages.js';
import type { Target } from './subject.js';
import type { Subjects } from './subjects.js';

export class SubjectActions implements Actions {
  constructor(
    readonly trans: TranslationBundle,
    private readonly subjects: Subjects,
    private readonly pages: Pages
  ) {}

  jump(target: Target): void {
    if (this.subjects.current?.jump(target) === false) {
      this.say(this.trans.__('This cell is not in the notebook any more.'));
    }
  }

  openPage(slug: string): void {
    void this.pages.show(slug).then(shown => {
      if (!shown) {
        this.say(this.trans.__('This version of the sidebar has no page of that name.'));
      }
    });
  }

  ask(request: Request): void {
    this.subjects.current?.feed?.ask(request);
  }

  load(): void {
    void this.loadThere();
  }

  private async loadThere(): Promise<void> {
    const subject = this.subjects.current;
    if (!subject?.feed) {
      return;
    }
    if (!(await subject.speaksPython())) {
      this.say(this.trans.__('This kernel does not run Python.'));
    } else if (!(await subject.feed.load())) {
      this.say(
        this.trans.__(
          'It could not be loaded: is torch_inspector installed where this kernel runs?'
        )
      );
    }
  }

  private say(text: string): void {
    Notification.info(text, { autoClose: 6000 });
  }
}

/** Carries out for the notebook in front what is clicked in the panel. */

import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Dialog, Notification, showDialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';

import type { Actions, Freeing } from './actions.js';
import { arrivalIn } from './line_words.js';
import { VERSION } from './message.js';
import type { FreeItem, Request } from './message.js';
import type { Pages } from './pages.js';
import type { Target } from './subject.js';
import type { Subjects } from './subjects.js';

const SETTINGS = 'settingeditor:open';

export class SubjectActions implements Actions {
  /** The latest note; of an id that no note has, before there is one. */
  private said = 'torch-inspector:none';

  constructor(
    readonly trans: TranslationBundle,
    private readonly subjects: Subjects,
    private readonly pages: Pages,
    private readonly commands: JupyterFrontEnd['commands']
  ) {}

  jump(target: Target): void {
    const said = arrivalIn(this.subjects.current?.jump(target) ?? 'there', this.trans);
    if (said) {
      this.say(said);
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

  free(what: Freeing): void {
    void this.freeIfWanted(what);
  }

  copy(text: string): void {
    navigator.clipboard.writeText(text).then(
      () => {
        this.say(this.trans.__('Copied: %1', text));
      },
      () => {
        this.say(this.trans.__('The browser does not let this page copy.'));
      }
    );
  }

  openSettings(): void {
    if (this.commands.hasCommand(SETTINGS)) {
      void this.commands.execute(SETTINGS, { query: 'torch_inspector' });
    } else {
      this.say(this.trans.__('This application has no editor of settings.'));
    }
  }

  load(): void {
    void this.loadThere();
  }

  private async freeIfWanted({ item, path }: Freeing): Promise<void> {
    const { trans } = this;
    // Whose kernel it is must not change while the question stands there.
    const feed = this.subjects.current?.feed;
    const words: Record<FreeItem, string> = {
      outputs: trans.__('`Out` and `_` forget them. No variable of yours changes.'),
      cycles: trans.__('Nothing of yours leads to them. A garbage collection runs.'),
      cache: trans.__('torch gives back blocks that no tensor uses.'),
      exception: trans.__('The last exception is dropped: %debug has nothing to look at then.')
    };
    const answer = await showDialog({
      title: path ? trans.__('Free %1?', path) : trans.__('Free this memory?'),
      body: words[item],
      buttons: [
        Dialog.cancelButton({ label: trans.__('Cancel') }),
        Dialog.warnButton({ label: trans.__('Free') })
      ]
    });
    if (answer.button.accept) {
      feed?.ask({ v: VERSION, ask: 'free', item, path });
    }
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
    // One at a time: whoever clicks five times has read it once.
    Notification.dismiss(this.said);
    this.said = Notification.info(text, { autoClose: 6000 });
  }
}

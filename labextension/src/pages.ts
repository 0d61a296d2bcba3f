/** Pages of pitfalls, opened beside the notebook. Only pages that came with this extension can be opened. */

import type { JupyterFrontEnd } from '@jupyterlab/application';
import { MainAreaWidget } from '@jupyterlab/apputils';
import { MimeModel } from '@jupyterlab/rendermime';
import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';

import { icon } from './icon.js';

const MARKDOWN = 'text/markdown';

export class Pages {
  private readonly open = new Map<string, MainAreaWidget>();

  constructor(
    private readonly app: JupyterFrontEnd,
    private readonly rendermime: IRenderMimeRegistry
  ) {}

  /** Opens a page or brings it to the front; false if there is none of this name. */
  async show(slug: string): Promise<boolean> {
    const { TEXTS } = await import('./page_texts.js');
    const text = TEXTS.get(slug);
    if (text === undefined) {
      return false;
    }
    let page = this.open.get(slug);
    if (!page || page.isDisposed) {
      page = await this.make(slug, text);
      this.open.set(slug, page);
    }
    if (!page.isAttached) {
      this.add(page);
    }
    this.app.shell.activateById(page.id);
    return true;
  }

  private async make(slug: string, text: string): Promise<MainAreaWidget> {
    const content = this.rendermime.createRenderer(MARKDOWN);
    await content.renderModel(new MimeModel({ data: { [MARKDOWN]: text }, trusted: false }));
    content.addClass('ti-Page');
    const page = new MainAreaWidget({ content });
    page.id = `torch-inspector-page-${slug}`;
    page.title.label = slug;
    page.title.icon = icon;
    page.title.closable = true;
    return page;
  }

  /** Notebook 7 has room for one thing in its main area, which is the notebook. */
  private add(page: MainAreaWidget): void {
    const single = this.app.name === 'Jupyter Notebook';
    this.app.shell.add(page, single ? 'right' : 'main', single ? {} : { mode: 'split-right' });
  }
}

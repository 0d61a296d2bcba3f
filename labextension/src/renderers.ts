/** Gives each notebook its own factory of renderers, which know the kernel that is connected to it. */

import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import type { IRenderMime, IRenderMimeRegistry } from '@jupyterlab/rendermime';

import type { Actions } from './actions.js';
import { RunRenderer } from './run_renderer.js';
import { RUN_MIME } from './saved_run.js';
import type { Subject } from './subject.js';
import type { Subjects } from './subjects.js';

// Before ipywidgets' -10: a bundle may hold a view of a widget, too.
const RANK = -20;

export function addRenderers(
  rendermime: IRenderMimeRegistry,
  notebooks: INotebookTracker,
  subjects: Subjects,
  actions: Actions
): void {
  // Consoles, previews and new views of an output show the card as it is.
  rendermime.addFactory(factory(null, actions, rendermime), RANK);
  const add = (panel: NotebookPanel): void => {
    const own = panel.content.rendermime;
    own.addFactory(factory(subjects.of(panel), actions, own), RANK);
  };
  notebooks.forEach(add);
  notebooks.widgetAdded.connect((_, panel) => {
    add(panel);
  });
}

function factory(
  subject: Subject | null,
  actions: Actions,
  rendermime: IRenderMimeRegistry
): IRenderMime.IRendererFactory {
  // Safe, so untrusted notebooks are drawn too: everything in a card becomes text.
  return {
    safe: true,
    mimeTypes: [RUN_MIME],
    createRenderer: () => new RunRenderer(subject, actions, rendermime)
  };
}

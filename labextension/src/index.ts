/** Puts the sidebar, its commands, its status item and the panels under cells into JupyterLab and Notebook 7. */

import { ILayoutRestorer } from '@jupyterlab/application';
import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette, IThemeManager } from '@jupyterlab/apputils';
import { IConsoleTracker } from '@jupyterlab/console';
import { INotebookTracker } from '@jupyterlab/notebook';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { IStatusBar } from '@jupyterlab/statusbar';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import { setBadge } from './badge.js';
import { addCommands } from './commands.js';
import { catchLinks } from './doc_links.js';
import { icon } from './icon.js';
import { Pages } from './pages.js';
import { InspectorPanel } from './panel.js';
import { addRenderers } from './renderers.js';
import { followSettings } from './settings.js';
import { SubjectActions } from './subject_actions.js';
import { Subjects } from './subjects.js';
import { StatusItem } from './status_item.js';

const ID = 'torch-inspector:plugin';
const RANK = 800;

const plugin: JupyterFrontEndPlugin<void> = {
  id: ID,
  description: 'What torch_inspector sees of the notebook in front: memory, cells, findings.',
  autoStart: true,
  requires: [INotebookTracker, IRenderMimeRegistry],
  optional: [
    IConsoleTracker,
    ITranslator,
    ICommandPalette,
    IStatusBar,
    IThemeManager,
    ISettingRegistry,
    ILayoutRestorer
  ],
  activate
};

function activate(
  app: JupyterFrontEnd,
  notebooks: INotebookTracker,
  rendermime: IRenderMimeRegistry,
  consoles: IConsoleTracker | null,
  translator: ITranslator | null,
  palette: ICommandPalette | null,
  statusBar: IStatusBar | null,
  themes: IThemeManager | null,
  registry: ISettingRegistry | null,
  restorer: ILayoutRestorer | null
): void {
  const trans = (translator ?? nullTranslator).load('torch_inspector');
  const subjects = new Subjects(notebooks, consoles);
  const actions = new SubjectActions(trans, subjects, new Pages(app, rendermime), app.commands);
  addRenderers(rendermime, notebooks, subjects, actions);
  const panel = new InspectorPanel(actions);
  panel.title.icon = icon;
  panel.title.caption = trans.__('torch_inspector');
  app.shell.add(panel, 'right', { rank: RANK });
  restorer?.add(panel, panel.id);
  const open = (): void => {
    app.shell.activateById(panel.id);
  };
  const status = new StatusItem(trans, open);
  statusBar?.registerStatusItem(status.id, {
    item: status,
    align: 'right',
    rank: RANK,
    isActive: () => status.isActive,
    activeStateChanged: status.activeChanged
  });
  addCommands(app, palette, trans, { open, panel, actions });
  catchLinks(document.body, slug => {
    actions.openPage(slug);
  });
  themes?.themeChanged.connect(() => {
    panel.recolour();
  });
  const follower = follow(subjects, panel, status);
  followSettings(registry, ID, settings => {
    status.enabled = settings.statusBar;
    follower.setBadge(settings.badge);
    subjects.heed(settings.wishes);
  });
}

/** Keeps panel, badge and status item on the notebook in front. */
function follow(
  subjects: Subjects,
  panel: InspectorPanel,
  status: StatusItem
): { setBadge: (on: boolean) => void } {
  let shown = subjects.current;
  let badge = true;
  const tell = (): void => {
    const record = shown?.feed?.record ?? null;
    setBadge(panel.title, record && badge ? record.groups : []);
    status.show_(record);
  };
  const turn = (): void => {
    shown?.changed.disconnect(tell);
    shown = subjects.current;
    shown?.changed.connect(tell);
    panel.show_(shown);
    tell();
  };
  subjects.changed.connect(turn);
  turn();
  return {
    setBadge: on => {
      badge = on;
      tell();
    }
  };
}

export default plugin;

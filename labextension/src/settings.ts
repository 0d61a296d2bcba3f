/** The user's settings, from `schema/plugin.json`. */

import type { ISettingRegistry } from '@jupyterlab/settingregistry';

import { DEFAULTS } from './wishes.js';
import type { Wishes } from './wishes.js';

export interface Settings {
  statusBar: boolean;
  badge: boolean;
  wishes: Wishes;
}

/** Has the settings applied now and whenever they change. */
export function followSettings(
  registry: ISettingRegistry | null,
  id: string,
  apply: (settings: Settings) => void
): void {
  const read = (settings: ISettingRegistry.ISettings): void => {
    apply(settingsOf(name => settings.get(name).composite));
  };
  registry
    ?.load(id)
    .then(settings => {
      read(settings);
      settings.changed.connect(read);
    })
    .catch((error: unknown) => {
      console.warn('torch_inspector: settings could not be read', error);
    });
}

/** The settings out of anything: what is of another type counts as its default. */
export function settingsOf(get: (name: string) => unknown): Settings {
  const flag = (name: string): boolean => get(name) !== false;
  const number = (name: string, standard: number): number => {
    const value = get(name);
    return typeof value === 'number' && Number.isFinite(value) ? value : standard;
  };
  return {
    statusBar: flag('statusBar'),
    badge: flag('badge'),
    wishes: {
      sampling: flag('sampling'),
      interval_s: number('sampleInterval', DEFAULTS.interval_s),
      findings: flag('liveFindings'),
      history: Math.max(1, Math.round(number('historyLength', DEFAULTS.history)))
    }
  };
}

/** The running cell in a line: how long, how many steps, how fast, and when memory would be full. */

import type { TranslationBundle } from '@jupyterlab/translation';

import { count, seconds, size } from './quantity.js';
import type { KernelRecord } from './record.js';

/** The words, worst news last; empty while no cell runs. */
export function progressOf(record: KernelRecord, trans: Pick<TranslationBundle, '__'>): string[] {
  const { running, rate } = record;
  if (!running) {
    return [];
  }
  const words = [
    trans.__('cell [%1] running for %2', running.number ?? ' ', seconds(running.elapsed_s))
  ];
  if (running.steps > 0) {
    const speed =
      rate.stepsPerSecond === null ? '' : trans.__(', %1 per second', count(rate.stepsPerSecond));
    words.push(trans.__('%1 steps', count(running.steps)) + speed);
  }
  if (rate.growth !== null) {
    words.push(
      trans.__('grows %1 per 100 steps', size(rate.growth)) + fullIn(rate.fullInSeconds, trans)
    );
  }
  return words;
}

function fullIn(left: number | null, trans: Pick<TranslationBundle, '__'>): string {
  if (left === null) {
    return '';
  }
  const minutes = Math.round(left / 60);
  return minutes < 1
    ? trans.__(': full in less than a minute')
    : trans.__(': full in about %1 min', minutes);
}

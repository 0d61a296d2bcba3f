/** Numbers with their units, in the same words as `torch_inspector/views/quantity.py`. */

const UNITS = ['B', 'KB', 'MB', 'GB', 'TB'];

/** Bytes to three digits: `512 B`, `12.3 MB`. Sizes count in steps of 1,024. */
export function size(bytes: number): string {
  let [value, unit] = [Math.abs(bytes), 0];
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  const digits = unit === 0 ? String(value) : threeDigits(value);
  return `${bytes < 0 ? '-' : ''}${digits} ${UNITS[unit] ?? ''}`;
}

/** A difference of bytes: `+12.3 MB`, `-1.00 KB`, `±0`. */
export function change(bytes: number): string {
  return bytes === 0 ? '±0' : `${bytes > 0 ? '+' : ''}${size(bytes)}`;
}

/** A duration: `1.20 ms`, `2.50 s`, `2 min 5 s`, `1 h 2 min`. */
export function seconds(duration: number): string {
  if (duration >= 3600) {
    return `${count(Math.floor(duration / 3600))} h ${Math.floor((duration % 3600) / 60)} min`;
  }
  if (duration >= 60) {
    return `${Math.floor(duration / 60)} min ${Math.floor(duration % 60)} s`;
  }
  if (duration >= 1) {
    return `${threeDigits(duration)} s`;
  }
  return duration === 0 ? '0 s' : `${threeDigits(duration * 1000)} ms`;
}

/** A number with commas: `1,024`; large ones short: `12.3 M`. */
export function count(number: number): string {
  return number.toLocaleString('en-US', { maximumFractionDigits: 1 });
}

/** How many parameters, short: `8`, `1.20 K`, `12.3 M`. */
export function amount(number: number): string {
  const steps: [number, string][] = [
    [1e9, 'G'],
    [1e6, 'M'],
    [1e3, 'K']
  ];
  const found = steps.find(([step]) => number >= step);
  return found ? `${threeDigits(number / found[0])} ${found[1]}` : String(number);
}

function threeDigits(value: number): string {
  // The bounds are where rounding would add a digit: 9.996 is 10.0, not 10.00.
  return value.toFixed(value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
}

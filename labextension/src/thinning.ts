/** A line in no more points than can be told apart on the screen. */

export type Column = (number | null)[];

// Of each pixel stay the first, the last, the lowest and the highest point: the line looks the same.
const PER_PIXEL = 4;

/**
 * The same columns in fewer points.
 *
 * @param at - times, rising
 * @param columns - values at these times; the first decides which points stay
 * @param from - begin of what is seen
 * @param to - end of what is seen
 * @param pixels - how wide that is
 */
export function thinned(
  at: number[],
  columns: Column[],
  from: number,
  to: number,
  pixels: number
): [number[], ...Column[]] {
  if (at.length <= PER_PIXEL * pixels || to <= from) {
    return [at, ...columns];
  }
  // All that is outside counts as one pixel on each side.
  const pixelOf = (time: number): number =>
    Math.max(-1, Math.min(pixels, Math.floor((pixels * (time - from)) / (to - from))));
  const kept: number[] = [];
  for (let begin = 0; begin < at.length;) {
    const pixel = pixelOf(at[begin] ?? 0);
    let end = begin + 1;
    while (end < at.length && pixelOf(at[end] ?? 0) === pixel) {
      end += 1;
    }
    kept.push(...standing(columns[0] ?? [], begin, end));
    begin = end;
  }
  return [kept.map(i => at[i] ?? 0), ...columns.map(column => kept.map(i => column[i] ?? null))];
}

/** Which points of one pixel stay, in order. */
function standing(values: Readonly<Column>, begin: number, end: number): number[] {
  let [low, high, gap] = [begin, begin, begin];
  for (let i = begin; i < end; i++) {
    const value = values[i] ?? null;
    if (value === null) {
      gap = i;
    } else {
      low = value < (values[low] ?? Infinity) ? i : low;
      high = value > (values[high] ?? -Infinity) ? i : high;
    }
  }
  return [...new Set([begin, low, high, gap, end - 1])].sort((a, b) => a - b);
}

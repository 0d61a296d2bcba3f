/** How fast the running cell goes and how memory grows with its steps, from its latest samples. */

/** One sample of a running cell. */
export interface Moment {
  at: number;
  steps: number;
  /** Bytes in use on the device that is nearest to its limit. */
  allocated: number;
  limit: number | null;
}

export interface Rate {
  /** Steps per second; null before two samples with steps. */
  stepsPerSecond: number | null;
  /** Bytes per 100 steps; null unless memory grows, clearly and evenly. */
  growth: number | null;
  /** Seconds until the limit is met at this rate. */
  fullInSeconds: number | null;
}

const WINDOW = 24;
const FEWEST = 4;
// Less than this in the whole window is the allocator's breath.
const SMALLEST_GROWTH = 1 << 20;
// Share of the movement that a straight line explains: below it memory goes up and down.
const STRAIGHT = 0.8;
// Later than a day is not worth a warning.
const LATEST_SECONDS = 86_400;

export function rateOf(moments: readonly Moment[]): Rate {
  const latest = moments.slice(-WINDOW);
  const [first, last] = [latest[0], latest.at(-1)];
  const none: Rate = { stepsPerSecond: null, growth: null, fullInSeconds: null };
  if (!first || !last || last.at <= first.at || last.steps <= first.steps) {
    return none;
  }
  const stepsPerSecond = (last.steps - first.steps) / ((last.at - first.at) / 1000);
  const stepping = latest.filter((one, i) => i === 0 || one.steps > (latest[i - 1]?.steps ?? 0));
  const slope = stepping.length < FEWEST ? null : evenSlope(stepping);
  if (slope === null) {
    return { ...none, stepsPerSecond };
  }
  const left = last.limit === null ? null : last.limit - last.allocated;
  const seconds = left === null ? null : Math.max(left, 0) / (slope * stepsPerSecond);
  const fullInSeconds = seconds !== null && seconds < LATEST_SECONDS ? seconds : null;
  return { stepsPerSecond, growth: slope * 100, fullInSeconds };
}

/** Bytes per step by least squares, if a rising line describes the points. */
function evenSlope(points: readonly Moment[]): number | null {
  const mean = (values: number[]): number => values.reduce((a, b) => a + b, 0) / values.length;
  const [x, y] = [mean(points.map(p => p.steps)), mean(points.map(p => p.allocated))];
  let [xy, xx, yy] = [0, 0, 0];
  for (const point of points) {
    const [dx, dy] = [point.steps - x, point.allocated - y];
    xy += dx * dy;
    xx += dx * dx;
    yy += dy * dy;
  }
  const slope = xx > 0 ? xy / xx : 0;
  const [first, last] = [points[0], points.at(-1)];
  const grown = first && last ? slope * (last.steps - first.steps) : 0;
  const straight = yy > 0 ? (xy * xy) / (xx * yy) : 0;
  return grown >= SMALLEST_GROWTH && straight >= STRAIGHT ? slope : null;
}

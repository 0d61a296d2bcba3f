/** Pitfalls that a notebook keeps silent in its metadata: written by this extension, or by whoever wrote the file. */

/** Our part of the metadata. */
export const METADATA = 'torch_inspector';
const SLUG = /^[a-z0-9-]{1,80}$/;
const MOST = 100;

/** What our part says; what is not understood of it counts as nothing. */
export function readKept(part: unknown): string[] {
  const { muted } = fieldsOf(part);
  const slugs = Array.isArray(muted) ? muted.slice(0, MOST).filter(isSlug) : [];
  return [...new Set(slugs)];
}

/** Our part with one pitfall more or less; null if there is nothing left to keep. */
export function withKept(part: unknown, slug: string, on: boolean): Record<string, unknown> | null {
  const others = fieldsOf(part);
  delete others['muted'];
  const slugs = readKept(part).filter(one => one !== slug);
  if (on) {
    slugs.push(slug);
  }
  const kept = slugs.length > 0 ? { ...others, muted: slugs.sort() } : others;
  return Object.keys(kept).length > 0 ? kept : null;
}

function isSlug(one: unknown): one is string {
  return typeof one === 'string' && SLUG.test(one);
}

function fieldsOf(part: unknown): Record<string, unknown> {
  return typeof part === 'object' && part !== null && !Array.isArray(part) ? { ...part } : {};
}

/** The colours of the theme, for drawing on a canvas. */

export interface Palette {
  line: string;
  fill: string;
  reserved: string;
  peak: string;
  limit: string;
  text: string;
  grid: string;
  band: string;
  font: string;
}

export function paletteOf(node: HTMLElement): Palette {
  const style = getComputedStyle(node);
  const colour = (name: string, fallback: string): string =>
    style.getPropertyValue(name).trim() || fallback;
  return {
    line: colour('--jp-brand-color1', '#1976d2'),
    fill: withAlpha(colour('--jp-brand-color1', '#1976d2'), 0.18),
    reserved: colour('--jp-ui-font-color2', '#888888'),
    peak: colour('--jp-warn-color1', '#f57c00'),
    limit: colour('--jp-error-color1', '#d32f2f'),
    text: colour('--jp-ui-font-color1', '#444444'),
    grid: colour('--jp-border-color2', '#e0e0e0'),
    band: withAlpha(colour('--jp-ui-font-color2', '#888888'), 0.14),
    font: `10px ${style.fontFamily}`
  };
}

/** The colour with its opacity changed, whatever form it is written in. */
function withAlpha(colour: string, alpha: number): string {
  return `color-mix(in srgb, ${colour} ${alpha * 100}%, transparent)`;
}

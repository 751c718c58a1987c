/** Renders a Vega-Lite specification to SVG, in this thread and without a canvas. */
import * as vega from "vega";
import { compile, type TopLevelSpec } from "vega-lite";
import { html } from "./html.ts";
import { theme } from "./theme.ts";

// Without a canvas Vega assumes that every character is 0.8 em wide, which pushes axes apart; digits and lower-case letters of common
// sans-serif fonts are about 0.56 em wide.
// `textMetrics` is public but has no type.
const { textMetrics } = vega as unknown as {
  textMetrics: { width: (item: { fontSize?: number }, text: unknown) => number };
};
textMetrics.width = (item, text) => String(text ?? "").length * 0.56 * (item.fontSize || 11);

export async function renderSvg(spec: TopLevelSpec, description: string): Promise<string> {
  const view = new vega.View(vega.parse(compile(spec, { config: theme }).spec), {
    renderer: "none",
    loader: vega.loader(),
  });
  try {
    const svg = await view.toSVG();
    const label = html`${description}`.html;
    // The style sheet sets the size; the view box keeps the proportions.
    return svg.replace(/^<svg[^>]*?viewBox="([^"]+)"[^>]*>/, `<svg viewBox="$1" role="img" aria-label="${label}">`);
  } finally {
    view.finalize();
  }
}

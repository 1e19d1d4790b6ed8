import { highlight } from './highlight.ts';
import { type Html, html } from './html.ts';

interface CodeBlock {
  /** Unique on the page. */
  readonly id: string;
  readonly title: string;
  /** A few words about what the code does. */
  readonly note: string;
  readonly code: string;
}

/** Renders code with a copy button. A long line scrolls inside the block, by keyboard too, and does not widen the page. */
export function renderCode({ id, title, note, code }: CodeBlock): Html {
  return html`<section class="code" aria-labelledby="${id}-title">
<header class="code-head"><h3 id="${id}-title">${title}</h3><p>${note}</p><button type="button" class="quiet" data-copy="${id}" hidden>Copy</button></header>
<pre tabindex="0" role="region" aria-labelledby="${id}-title"><code id="${id}">${highlight(code)}</code></pre>
</section>`;
}

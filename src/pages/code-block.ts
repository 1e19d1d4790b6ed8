import { highlight } from './highlight.ts';
import { type Html, html } from './html.ts';

interface CodeBlock {
  /** Unique on the page. */
  readonly id: string;
  readonly title: string;
  /** A few words about what the code does. */
  readonly note: string;
  readonly code: string;
  /** The level of the heading on its page. */
  readonly level?: 3 | 5;
}

/** Renders code with a copy button. A long line scrolls inside the block, by keyboard too, and does not widen the page. */
export function renderCode({ id, title, note, code, level = 3 }: CodeBlock): Html {
  const heading = level === 3 ? html`<h3 id="${id}-title">${title}</h3>` : html`<h5 id="${id}-title">${title}</h5>`;
  return html`<section class="code" aria-labelledby="${id}-title">
<header class="code-head">${heading}<p>${note}</p><button type="button" class="quiet" data-copy="${id}" hidden>Copy</button></header>
<pre tabindex="0" role="region" aria-labelledby="${id}-title"><code id="${id}">${highlight(code)}</code></pre>
</section>`;
}

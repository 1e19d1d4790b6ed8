import { type Html, html } from '../html.ts';

/** Renders the document's own texts: what stands between backticks is code. Everything else stays plain text. */
export function inlineCode(text: string): Html {
  const parts = text.split('`');
  // An odd backtick at the end belongs to the text.
  if (parts.length % 2 === 0) return html`${text}`;
  return html`${parts.map((part, at) => (at % 2 === 1 ? html`<code>${part}</code>` : html`${part}`))}`;
}

// The template that escapes, values as people read them, and the blocks that pages share.

const MARKUP = Symbol('markup');

/** HTML that `html` has made. Only this type is put into a page unescaped, and text cannot have it. */
export interface Html {
  readonly [MARKUP]: string;
}

/** A value in a template. Text and numbers are escaped, HTML is not. Null, undefined and false give nothing. */
export type HtmlValue = string | number | bigint | Html | readonly HtmlValue[] | null | undefined | false;

/**
 * Makes HTML. Every value is escaped unless it is HTML, so that a third party's text stays text. Use values as content
 * and in quoted attribute values alone. A backslash at the end of a line joins it to the next.
 */
export function html(strings: TemplateStringsArray, ...values: readonly HtmlValue[]): Html {
  let markup = strings[0] ?? '';
  values.forEach((value, index) => {
    markup += markupOf(value) + (strings[index + 1] ?? '');
  });
  return { [MARKUP]: markup };
}

export function markupOf(value: HtmlValue): string {
  if (value === null || value === undefined || value === false) return '';
  if (typeof value === 'object') {
    return MARKUP in value ? value[MARKUP] : value.map(markupOf).join('');
  }
  return String(value).replace(/[&<>"']/g, (character) => ESCAPES[character] ?? '');
}

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

const NUMBER = new Intl.NumberFormat('en', { maximumFractionDigits: 2 });

/** A count or a measure, with thousands separators and at most two decimals. */
export function showNumber(value: number): string {
  return NUMBER.format(value);
}

/** A decimal string, rounded for display. The API returns all digits. */
export function showDecimal(text: string, places: number): string {
  return Number(text).toLocaleString('en', { maximumFractionDigits: places });
}

/** It is shown for a value that is not known, in place of a misleading zero. */
export const UNKNOWN = html`<span class="unknown">not known</span>`;

export function showMeasure(value: number | null | undefined, unit: string): Html {
  return value === null || value === undefined ? UNKNOWN : html`${showNumber(value)} ${unit}`;
}

/** A moment in Unix seconds, shown in UTC, so that the page is the same for all readers. */
export function showTime(at: number): Html {
  const iso = new Date(at * 1000).toISOString();
  return html`<time datetime="${iso.slice(0, 19)}Z">${iso.slice(0, 10)} ${iso.slice(11, 19)}</time>`;
}

export function showTimeOfDay(at: number): Html {
  const iso = new Date(at * 1000).toISOString();
  return html`<time datetime="${iso.slice(0, 19)}Z">${iso.slice(11, 19)}</time>`;
}

export function showDay(at: number): Html {
  const day = new Date(at * 1000).toISOString().slice(0, 10);
  return html`<time datetime="${day}">${day}</time>`;
}

/** A shortened hash for tables. The link or its title has the whole hash. */
export function shortHash(hash: string): string {
  return hash.length <= 14 ? hash : `${hash.slice(0, 8)}…${hash.slice(-4)}`;
}

/** A third party's URL as a link if its scheme is safe for a browser, else its text alone. */
export function showLink(url: string, text: string): Html {
  const { protocol } = URL.parse(url) ?? {};
  if (protocol !== 'https:' && protocol !== 'http:') return html`${text}`;
  return html`<a href="${url}" rel="noopener noreferrer nofollow ugc">${text}</a>`;
}

export function renderPart(titleId: string, title: string, body: HtmlValue): Html {
  return html`<section class="part" aria-labelledby="${titleId}">\
<header class="head"><h2 id="${titleId}">${title}</h2></header>
${body}</section>`;
}

export function renderPair(term: string, value: HtmlValue): Html {
  return html`<div><dt>${term}</dt><dd>${value}</dd></div>`;
}

export function renderHeads(columns: readonly string[]): Html {
  return html`<thead><tr>${columns.map((column) => html`<th scope="col">${column}</th>`)}</tr></thead>`;
}

/** A table whose rows become cards on a narrow screen. It scrolls by keyboard too. */
export function renderCards(label: string, columns: readonly string[], rows: readonly Html[]): Html {
  return html`<div class="scroll" role="region" aria-label="${label}" tabindex="0"><table class="cards">
<caption class="unseen">${label}</caption>
${renderHeads(columns)}
<tbody>${rows}</tbody>
</table></div>`;
}

interface CodeBlock {
  /** Unique on the page. */
  readonly id: string;
  readonly title: string;
  readonly note: string;
  readonly code: string;
  readonly level?: 3 | 5;
}

/** Code with a copy button. A long line scrolls inside the block, by keyboard too, and widens no page. */
export function renderCode({ id, title, note, code, level = 3 }: CodeBlock): Html {
  const heading = level === 3 ? html`<h3 id="${id}-title">${title}</h3>` : html`<h5 id="${id}-title">${title}</h5>`;
  return html`<section class="code" aria-labelledby="${id}-title">
<header class="code-head">${heading}<p>${note}</p>\
<button type="button" class="quiet" data-copy="${id}" hidden>Copy</button></header>
<pre tabindex="0" role="region" aria-labelledby="${id}-title"><code id="${id}">${highlight(code)}</code></pre>
</section>`;
}

/** Marks strings and keywords in code. Screen readers read the code unchanged. */
export function highlight(code: string): Html {
  const parts: Html[] = [];
  let end = 0;
  for (const { index, 0: token, groups } of code.matchAll(TOKENS)) {
    parts.push(html`${code.slice(end, index)}<span class="${groups?.text ? 'text' : 'word'}">${token}</span>`);
    end = index + token.length;
  }
  return html`${parts}${code.slice(end)}`;
}

const TOKENS =
  /(?<text>'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`)|(?<word>\b(?:import|from|const|await|new|as|with|curl|grep|cut|tr|base64)\b)/g;

/** Marks what stands between backticks in the document's own texts as code. */
export function inlineCode(text: string): Html {
  const parts = text.split('`');
  // An odd backtick at the end belongs to the text.
  if (parts.length % 2 === 0) return html`${text}`;
  return html`${parts.map((part, at) => (at % 2 === 1 ? html`<code>${part}</code>` : html`${part}`))}`;
}

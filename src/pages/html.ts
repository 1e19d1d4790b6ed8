const MARKUP = Symbol('markup');

/** HTML that `html` has made. Only this type is put into a page unescaped, and text cannot have it. */
export interface Html {
  readonly [MARKUP]: string;
}

/** A value in a template. Text and numbers are escaped, HTML is not. Null, undefined and false give nothing. */
export type HtmlValue = string | number | bigint | Html | readonly HtmlValue[] | null | undefined | false;

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/**
 * Makes HTML from a template. Every value is escaped unless it is HTML, so that a third party's text stays text.
 * Use values as content and inside quoted attribute values. Never put a third party's value into a tag name, an attribute name or an unquoted
 * attribute.
 */
export function html(strings: TemplateStringsArray, ...values: readonly HtmlValue[]): Html {
  let markup = strings[0] ?? '';
  values.forEach((value, index) => {
    markup += markupOf(value) + (strings[index + 1] ?? '');
  });
  return { [MARKUP]: markup };
}

/** The markup of a template value. */
export function markupOf(value: HtmlValue): string {
  if (value === null || value === undefined || value === false) return '';
  if (typeof value === 'object') {
    return MARKUP in value ? value[MARKUP] : value.map(markupOf).join('');
  }
  return String(value).replace(/[&<>"']/g, (character) => ESCAPES[character] ?? '');
}

const MARKUP = Symbol('markup');

/** A piece of HTML that `html` has made: the only thing that is put into a page as it is. No text can pass for one. */
export interface Html {
  readonly [MARKUP]: string;
}

/** What may stand in a template: text and numbers are escaped, pieces are not, and nothing at all leaves nothing. */
export type HtmlValue = string | number | bigint | Html | readonly HtmlValue[] | null | undefined | false;

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/**
 * Makes HTML of a template; whatever is put into it is escaped unless it is HTML itself, so that a stranger's text stays text.
 * Good for content and for attribute values in quotes; nothing that is not ours belongs into the name of a tag or an attribute, or an unquoted value.
 */
export function html(strings: TemplateStringsArray, ...values: readonly HtmlValue[]): Html {
  let markup = strings[0] ?? '';
  values.forEach((value, index) => {
    markup += markupOf(value) + (strings[index + 1] ?? '');
  });
  return { [MARKUP]: markup };
}

/** The text of a piece of HTML, or of whatever may stand in one. */
export function markupOf(value: HtmlValue): string {
  if (value === null || value === undefined || value === false) return '';
  if (typeof value === 'object') {
    return MARKUP in value ? value[MARKUP] : value.map(markupOf).join('');
  }
  return String(value).replace(/[&<>"']/g, (character) => ESCAPES[character] ?? '');
}

/** What an expression names. */
export interface Named {
  /** The metrics, without selectors. */
  readonly metrics: readonly string[];
  /** Each label of a selector, with its metric. */
  readonly selected: readonly { readonly metric: string; readonly label: string }[];
  /** The labels of `by`, `on` and the like. */
  readonly grouped: readonly string[];
}

const KEYWORDS = new Set(['and', 'or', 'unless', 'bool', 'offset', 'inf', 'nan']);

/** Reads the names in an expression of PromQL. It knows what this project's files use: no subqueries, no `offset`. */
export function namesIn(expr: string): Named {
  const grouped: string[] = [];
  const selected: { metric: string; label: string }[] = [];
  const rest = expr
    .replace(/"(?:[^"\\]|\\.)*"/g, '""')
    .replace(/\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)/g, (_, labels: string) => {
      grouped.push(...(labels.match(/\w+/g) ?? []));
      return ' ';
    })
    .replace(/([a-zA-Z_:][\w:]*)\s*\{([^}]*)\}/g, (_, metric: string, matchers: string) => {
      for (const [, label = ''] of matchers.matchAll(/(\w+)\s*(?:=~|!~|!=|=)/g)) selected.push({ metric, label });
      return metric;
    })
    .replace(/\[[^\]]*\]/g, '');
  const words = [...rest.matchAll(/(?<![\w:.])[a-zA-Z_:][\w:]*(?!\s*\(|[\w:])/g)].map(([word]) => word);
  return { metrics: [...new Set(words.filter((word) => !KEYWORDS.has(word)))], selected, grouped };
}

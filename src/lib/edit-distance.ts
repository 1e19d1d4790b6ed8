/** Levenshtein's distance, or `most + 1` as soon as it is known to be more than `most`. */
export function editDistance(a: string, b: string, most: number): number {
  if (Math.abs(a.length - b.length) > most) return most + 1;
  let previous = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let at = 1; at <= b.length; at++) {
      const replaced = (previous[at - 1] ?? 0) + (a[row - 1] === b[at - 1] ? 0 : 1);
      current.push(Math.min(replaced, (previous[at] ?? 0) + 1, (current[at - 1] ?? 0) + 1));
    }
    if (Math.min(...current) > most) return most + 1;
    previous = current;
  }
  return previous[b.length] ?? 0;
}

/** The fewest edits away, at most `most`; the first of several. */
export function nearest(
  text: string,
  known: Iterable<string>,
  most: number,
): { readonly name: string; readonly edits: number } | null {
  let best: { readonly name: string; readonly edits: number } | null = null;
  for (const name of known) {
    const left = best === null ? most : best.edits - 1;
    const edits = editDistance(text, name, left);
    if (edits <= left) best = { name, edits };
  }
  return best;
}

import type { Operation } from './read-document.ts';

/** The words of a search, in lower case. */
export function wordsIn(asked: string): string[] {
  return asked
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '');
}

/** Whether every word stands in what an operation is called, says and takes. The page's script compares the same text. */
export function isAskedFor(operation: Operation, words: readonly string[]): boolean {
  const text = searchedText(operation);
  return words.every((word) => text.includes(word));
}

/** Method, path, texts and parameters of an operation, and `free` where nothing is paid, in lower case. */
export function searchedText({ method, path, title, text, params, priceUsd }: Operation): string {
  const cost = priceUsd === null ? ['free'] : [];
  return [method, path, title, text, ...params.map(({ name }) => name), ...cost].join(' ').toLowerCase();
}

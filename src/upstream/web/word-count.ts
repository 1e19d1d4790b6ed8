// Word boundaries hardly depend on the language: dictionaries of Chinese, Japanese, Thai and others are always used.
const segmenter = new Intl.Segmenter('en', { granularity: 'word' });

/** The words of a text by Unicode's rules (UAX 29), also in scripts that write no spaces. Punctuation counts for none. */
export function countWords(text: string): number {
  let words = 0;
  for (const { isWordLike } of segmenter.segment(text)) if (isWordLike) words += 1;
  return words;
}

import { expect, test } from 'vitest';
import { DOCUMENTS, readText } from '../../support/documents.ts';

// A reader sees each document once, so none grows past its ceiling. A ceiling may only fall: who adds words takes others
// out, or gives the place where the fact is told.

const MOST_WORDS: Readonly<Record<string, number>> = {
  'README.md': 900,
  'CONTRIBUTING.md': 900,
  'SECURITY.md': 700,
  'docs/architecture.md': 900,
  'docs/clients.md': 1000,
  'docs/data.md': 800,
  'docs/disks.md': 450,
  'docs/limits.md': 500,
  'docs/paying.md': 3300,
  'docs/releasing.md': 450,
  'docs/selling.md': 1200,
  'src/mcp/README.md': 650,
  'src/payment/README.md': 800,
  'src/payment/STEPS.md': 1200,
  'src/payment/ADDING.md': 600,
  'src/payment/channels/README.md': 700,
  'src/payment/lightning/README.md': 700,
  'src/payment/protocols/mpp/README.md': 550,
  'src/payment/relayer/README.md': 650,
};

/** As `wc -w` counts them. */
const wordsOf = (text: string): number => text.split(/\s+/).filter((word) => word !== '').length;

test('words are counted as wc counts them', () => {
  expect(wordsOf('# A page\n\n| a | b |\n')).toBe(8);
});

test.each(Object.entries(MOST_WORDS))('%s has at most %i words', (document, most) => {
  expect(DOCUMENTS).toContain(document);
  expect(wordsOf(readText(document))).toBeLessThanOrEqual(most);
});

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
  'docs/disks.md': 450,
  'docs/limits.md': 500,
  'docs/benchmarks.md': 2000,
  'docs/operating.md': 3800,
  'docs/paying.md': 3470,
  'docs/releasing.md': 450,
  'docs/selling.md': 1200,
  'src/README.md': 900,
  'src/collector/README.md': 700,
  'src/endpoints/README.md': 660,
  'src/http/README.md': 600,
  'src/mcp/README.md': 650,
  'src/pages/README.md': 610,
  'src/routes/README.md': 400,
  'src/store/README.md': 800,
  'src/upstream/README.md': 700,
  'test/simulation/README.md': 700,
  'src/payment/README.md': 730,
  'src/payment/STEPS.md': 1000,
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

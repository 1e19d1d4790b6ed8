import { expect, test } from 'vitest';
import { inRepository, readText } from '../../support/documents.ts';

// A reader sees each document once, so none grows past its ceiling, nor do all together. A ceiling may only fall: who
// adds words takes others out, or gives the place where the fact is told.

const MOST_WORDS: Readonly<Record<string, number>> = {
  'README.md': 830,
  'CONTRIBUTING.md': 800,
  'SECURITY.md': 600,
  'cli/README.md': 530,
  'docs/architecture.md': 340,
  'docs/benchmarks.md': 1590,
  'docs/clients.md': 950,
  'docs/disks.md': 430,
  'docs/limits.md': 460,
  'docs/model/README.md': 770,
  'docs/operating.md': 2940,
  'docs/paying.md': 2960,
  'docs/releasing.md': 440,
  'docs/selling.md': 1000,
  'src/README.md': 830,
  'src/collector/README.md': 590,
  'src/endpoints/README.md': 520,
  'src/http/README.md': 440,
  'src/http/skill.md': 630,
  'src/mcp/README.md': 530,
  'src/pages/README.md': 460,
  'src/payment/ADDING.md': 590,
  'src/payment/README.md': 620,
  'src/payment/STEPS.md': 920,
  'src/payment/channels/README.md': 600,
  'src/payment/lightning/README.md': 660,
  'src/payment/protocols/l402/README.md': 240,
  'src/payment/protocols/mpp/README.md': 510,
  'src/payment/relayer/README.md': 640,
  'src/routes/README.md': 220,
  'src/store/README.md': 670,
  'src/upstream/README.md': 560,
  'test/fixtures/schemas/README.md': 120,
  'test/simulation/README.md': 600,
};
const MOST_OF_ALL = 25_000;

/** The history, and what `npm run licences`, `settings` and `agents` write. */
const UNCOUNTED = ['CHANGELOG.md', 'docs/licences.md', 'docs/configuration.md', 'docs/agents/percall/SKILL.md'];
// Builds of programs hold the service's texts, too.
const counted = inRepository('{*.md,{cli,docs,src,test}/**/*.md}').filter(
  (path) => !UNCOUNTED.includes(path) && !path.startsWith('test/dist/'),
);

/** As `wc -w` counts them. */
const wordsOf = (text: string): number => text.split(/\s+/).filter((word) => word !== '').length;

test('words are counted as wc counts them', () => {
  expect(wordsOf('# A page\n\n| a | b |\n')).toBe(8);
});

test('each document has a ceiling', () => {
  expect(Object.keys(MOST_WORDS).sort()).toEqual(counted.sort());
});

test.each(Object.entries(MOST_WORDS))('%s has at most %i words', (document, most) => {
  expect(wordsOf(readText(document))).toBeLessThanOrEqual(most);
});

test(`all documents together have at most ${MOST_OF_ALL} words, without the table that npm run clients prints`, () => {
  const printed = wordsOf(
    readText('docs/clients.md')
      .match(/^\|.*$/gm)
      ?.join('\n') ?? '',
  );
  expect(printed).toBeGreaterThan(100);
  const all = counted.reduce((sum, document) => sum + wordsOf(readText(document)), -printed);
  expect(all).toBeLessThanOrEqual(MOST_OF_ALL);
});

import { describe, expect, test } from 'vitest';
import { readQuestion } from '../../../src/discovery/ranking.ts';
import { STOP_WORDS, SYNONYMS } from '../../../src/discovery/synonyms.ts';

/** The concepts of a query, by their first wording. */
const asked = (text: string) => readQuestion(text).map(({ wordings }) => wordings[0]?.phrase);
const wordingsOf = (text: string) => readQuestion(text)[0]?.wordings ?? [];

describe('a question', () => {
  test('searches for its meaningful words, not for its form', () => {
    expect(asked('Could you please get me the API for tide tables?')).toEqual(['tide', 'tables']);
  });

  test('of stop words alone is searched with them', () => {
    expect(asked('who is it')).toEqual(['who', 'is', 'it']);
    expect(asked('42')).toEqual(['42']);
  });

  test.each(['', ' ', '?!', '"*()"', '\u0000'])('%j searches for nothing', (text) => {
    expect(readQuestion(text)).toEqual([]);
  });

  test('gives a synonym less weight than the word itself, and finds it for the plural too', () => {
    for (const text of ['photo', 'photos', 'PHOTOS']) {
      const [own, ...others] = wordingsOf(text);
      expect(own).toMatchObject({ phrase: text.toLowerCase(), weight: 1 });
      expect(others).toContainEqual({ phrase: 'image', weight: 0.6, prefix: false, names: false });
    }
  });

  test('tells its subjects from words that may be asked of anything', () => {
    const kinds = readQuestion('weather forecast for 0x50A2b0B577eC24d7ce1aeD372A8a6fd14CE1bE57').map(
      ({ kind }) => kind,
    );
    expect(kinds).toEqual(['subject', 'general', 'shape', 'shape', 'shape', 'shape']);
  });

  test.each([
    ['latest version of react', ['react']],
    ['biography of Marie Curie', ['marie curie']],
    ['is left-pad safe', ['left pad']],
    ['how old is the Eiffel Tower', ['eiffel tower']],
    ['solve a captcha', []],
    ['wallet balance of a person', []],
    ['price of USDC', []],
    ['Tide tables', []],
  ])('%j: the names in it are %j', (text, names) => {
    const found = readQuestion(text).filter(({ kind }) => kind === 'name');
    expect(found.map(({ wordings }) => wordings[0]?.phrase)).toEqual(names);
  });

  test('about a name asks the encyclopedia, and about anything else it does not', () => {
    for (const text of ['history of Rome', 'who was Nikola Tesla', 'how tall is the Eiffel Tower']) {
      expect(asked(text), text).toContain('encyclopedia');
    }
    for (const text of ['history of exchange rates', 'who was paid', 'what is the gas price']) {
      expect(asked(text), text).not.toContain('encyclopedia');
    }
  });

  test('about one thing of a known form is read as about its kind', () => {
    expect(asked('is example.com up')).toContain('website up');
    expect(asked('is example.com up')).not.toContain('domain');
    expect(asked('who owns example.com')).toContain('domain');
  });

  test('is searched without the words that only say that it is one', () => {
    expect(asked('please find out whether tide tables exist')).toEqual(['tide', 'tables', 'exist']);
    expect(asked('find tide tables')).toEqual(['find', 'tide', 'tables']);
  });

  test('knows pairs of words, also across words that are left out between them', () => {
    expect(asked('smart contracts')).toContain('contract deploys');
    expect(asked('speech into text')).toContain('transcribe');
    expect(asked('contracts, smart')).not.toContain('contract deploys');
  });

  test.each([
    [`0x${'aB'.repeat(20)}`, 'wallet'],
    [`(0x${'0f'.repeat(32)})`, 'transaction'],
    ['https://example.com/a?b=c', 'web page'],
    ['192.0.2.1', 'ip address'],
    ['somebody@example.org', 'email'],
    ['CVE-2021-23337', 'vulnerabilities'],
    ['example.com', 'domain'],
    ['CHF', 'currency'],
  ])('recognises %s by its form', (text, means) => {
    expect(asked(text)).toContain(means);
  });

  test('treats the last word as possibly incomplete', () => {
    const prefixes = (text: string) =>
      readQuestion(text).flatMap(({ wordings }) => wordings.filter(({ prefix }) => prefix).map(({ phrase }) => phrase));
    expect(prefixes('tide vol')).toEqual(['tide', 'vol']);
    expect(prefixes('photo vo')).toEqual([]);
  });

  test('is limited in length', () => {
    expect(readQuestion('smart contract '.repeat(1000)).length).toBeLessThanOrEqual(16);
    expect(readQuestion(`${'x'.repeat(41)} tide`)).toHaveLength(1);
  });

  test.each(['constructor', '__proto__', 'toString'])('%s is a word like any other', (word) => {
    expect(wordingsOf(word).every(({ phrase }) => typeof phrase === 'string')).toBe(true);
    expect(readQuestion(word).length).toBeGreaterThan(0);
  });
});

describe('the table of synonyms', () => {
  test('has keys of one or two plain words in lower case, each with synonyms', () => {
    for (const [key, phrases] of Object.entries(SYNONYMS)) {
      expect(key).toMatch(/^[a-z0-9]+( [a-z0-9]+)?$/);
      expect(phrases.length, key).toBeGreaterThan(0);
      for (const phrase of phrases) expect(phrase).toMatch(/^[a-z0-9]+( [a-z0-9]+){0,4}$/);
    }
  });

  test('has no entry for a word that is never searched', () => {
    expect(Object.keys(SYNONYMS).filter((key) => STOP_WORDS.has(key))).toEqual([]);
  });
});

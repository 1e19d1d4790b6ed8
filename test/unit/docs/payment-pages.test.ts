import { posix } from 'node:path';
import { describe, expect, test } from 'vitest';
import { inRepository, readText } from '../../support/documents.ts';

// The pages beside the payment code name files, functions and types. Each of them must exist.

const PAGES = inRepository('src/payment/**/*.md').sort();

/** The three pages of the core. */
const CORE = ['README', 'STEPS', 'ADDING'];

const FILE = /^(?:[\w.-]+\/)*(?:[\w.-]+\.(?:ts|md|json)|\.env\.example)$/;
const FOLDER = /^(?:\.\.\/)*(?:[\w.-]+\/)+[\w-]*$/;

const inBackticks = (text: string): string[] =>
  [...text.replace(/^```[\s\S]*?^```$/gm, '').matchAll(/`([^`\n]+)`/g)].map(([, code = '']) => code);

/** Files and folders that a page names and that do not exist. A bare name may be in any folder that the page names. */
function missingFiles(page: string, text: string): string[] {
  const named = inBackticks(text);
  const places = (name: string): string[] => [posix.join(posix.dirname(page), name), name];
  const exists = (path: string): boolean => inRepository(path.replace(/\/$/, '')).length > 0;
  const folders = named.filter((name) => FOLDER.test(name)).flatMap(places);
  const isThere = (name: string): boolean =>
    places(name).some(exists) ||
    (!name.includes('/') && folders.some((folder) => exists(posix.join(folder, '**', name))));
  return named.filter((name) => FILE.test(name) || FOLDER.test(name)).filter((name) => !isThere(name));
}

const code = inRepository('{src,test/support,test/ports}/**/*.ts').map(readText).join('\n');
const words = new Set(code.match(/[A-Za-z_$][\w$]*/g));

/** Functions, types, members, constants and error codes that a page names and that no file has. */
const missingNames = (text: string): string[] =>
  inBackticks(text)
    .filter((name) => /^[A-Za-z_]\w*(?:\.[a-z]\w*)*$/.test(name) && !FILE.test(name))
    .filter((name) => name.split('.').some((part) => !words.has(part)));

test('a file and a function that do not exist are found', () => {
  const text = '`sale.ts` `bazaar.ts` `gone.ts` `protocols/gone/` `src/gone/rails.ts` `readSale` `ledger.goneAway`';
  expect(missingFiles('src/payment/README.md', text)).toEqual([
    'bazaar.ts',
    'gone.ts',
    'protocols/gone/',
    'src/gone/rails.ts',
  ]);
  expect(missingFiles('src/payment/README.md', `${text} \`protocols/\``)).not.toContain('bazaar.ts');
  expect(missingNames(text)).toEqual(['ledger.goneAway']);
});

describe.each(PAGES)('%s', (page) => {
  const text = readText(page);

  test('names files that exist', () => {
    expect(missingFiles(page, text)).toEqual([]);
  });
});

describe.each(CORE)('src/payment/%s.md', (name) => {
  const text = readText(`src/payment/${name}.md`);

  test('names functions, types and error codes that exist', () => {
    expect(inBackticks(text).length).toBeGreaterThan(20);
    expect(missingNames(text)).toEqual([]);
  });
});

test('the table of steps has every step once, in order', () => {
  const rows = [...readText('src/payment/STEPS.md').matchAll(/^\| (\d+) \|/gm)].map(([, step]) => Number(step));
  expect([...new Set(rows)]).toEqual(Array.from({ length: 13 }, (_, at) => at + 1));
});

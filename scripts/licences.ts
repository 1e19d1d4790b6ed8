import { readFileSync, writeFileSync } from 'node:fs';
import { forbidden, licencePage } from './lib/supply/licences.ts';
import { readLock } from './lib/supply/lock-file.ts';

// Writes docs/licences.md from package-lock.json. With --check it compares instead. Either way it exits with 1 when a package ships under a licence that
// is not permissive.

const FILE = new URL('../docs/licences.md', import.meta.url);
const lock = readLock(new URL('../package-lock.json', import.meta.url).pathname);
const page = licencePage(lock);

for (const one of forbidden(lock)) {
  console.error(`ships, and may not: ${one}`);
  process.exitCode = 1;
}
if (!process.argv.includes('--check')) {
  writeFileSync(FILE, page);
  console.log('docs/licences.md is written');
} else if (readFileSync(FILE, 'utf8') !== page) {
  console.error('docs/licences.md is not what package-lock.json says; run `npm run licences` and commit the result');
  process.exitCode = 1;
}

import { keepGenerated } from './lib/generated.ts';
import { forbidden, licencePage } from './lib/supply/licences.ts';
import { readLock } from './lib/supply/lock-file.ts';

// Writes docs/licences.md from package-lock.json. With --check it compares instead. Either way it exits with 1 when a package ships under a licence that
// is not permissive.

const lock = readLock(new URL('../package-lock.json', import.meta.url).pathname);

for (const one of forbidden(lock)) {
  console.error(`ships, and may not: ${one}`);
  process.exitCode = 1;
}
keepGenerated('docs/licences.md', licencePage(lock), 'what package-lock.json says; run `npm run licences`');

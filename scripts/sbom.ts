import { readFileSync, writeFileSync } from 'node:fs';
import { readLock } from './lib/supply/lock-file.ts';
import { makeSbom, type Sbom, sbomFaults } from './lib/supply/sbom.ts';

// Writes docs/sbom.cdx.json, the list of what ships (CycloneDX). With --check it compares the committed file with package.json and package-lock.json
// instead, and exits with 1 when they differ.

const FILE = new URL('../docs/sbom.cdx.json', import.meta.url);
const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
const lock = readLock(new URL('../package-lock.json', import.meta.url).pathname);
const check = process.argv.includes('--check');

const sbom = check ? (JSON.parse(readFileSync(FILE, 'utf8')) as Sbom) : makeSbom(manifest, lock);
const faults = sbomFaults(sbom, manifest, lock);
for (const fault of faults) console.error(`docs/sbom.cdx.json: ${fault}`);
if (faults.length > 0) {
  if (check) console.error('run `npm run sbom` and commit the result');
  process.exitCode = 1;
} else if (!check) {
  writeFileSync(FILE, `${JSON.stringify(sbom, null, 2)}\n`);
  console.log(`docs/sbom.cdx.json lists the ${sbom.components.length} packages that ship`);
}

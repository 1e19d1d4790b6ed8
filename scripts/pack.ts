import { dirname } from 'node:path';
import { afterPack, beforePack } from './lib/supply/tarball.ts';

// Runs around `npm pack`: before it, builds what ships and gives package.json the form that ships; after it, puts
// package.json back. A run that was killed in between is put right by the next one.

const root = dirname(import.meta.dirname);
try {
  if (process.argv[2] === 'after') afterPack(root);
  else await beforePack(root);
} catch (error) {
  afterPack(root);
  console.error(`nothing is packed: ${error instanceof Error ? error.message : error}`);
  process.exitCode = 1;
}

import { dirname } from 'node:path';
import { build } from './lib/build/build.ts';

// Builds dist/, the service in a few files. It starts in half the time and in less memory than from 1,650 modules. `npm start` runs this first.

const startedMs = performance.now();
try {
  const isNew = await build(dirname(import.meta.dirname));
  const seconds = ((performance.now() - startedMs) / 1000).toFixed(1);
  console.log(isNew ? `dist/ is built, in ${seconds} s` : 'dist/ is of these sources');
} catch (error) {
  console.error(`dist/ cannot be built: ${error instanceof Error ? error.message : error}`);
  if (error instanceof Error && 'code' in error && error.code === 'ERR_MODULE_NOT_FOUND') {
    console.error('A build needs the development dependencies: npm ci --include=dev && npm run build');
  }
  process.exitCode = 1;
}

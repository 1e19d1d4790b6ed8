import { build } from './lib/build/build.ts';

// Builds dist/, the service in a few files. It starts in half the time and in less memory than from a thousand modules. `npm start` runs this first.

const root = new URL('..', import.meta.url).pathname.slice(0, -1);
const startedMs = performance.now();
try {
  const isNew = await build(root);
  const seconds = ((performance.now() - startedMs) / 1000).toFixed(1);
  console.log(isNew ? `dist/ is built, in ${seconds} s` : 'dist/ is of these sources');
} catch (error) {
  console.error(`dist/ cannot be built: ${error instanceof Error ? error.message : error}`);
  console.error('A build needs the development dependencies: npm ci && npm run build');
  process.exitCode = 1;
}

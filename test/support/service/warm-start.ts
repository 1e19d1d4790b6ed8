import { once } from 'node:events';

// Loaded before the server's own program, with `node --import`. It loads the service's modules, which takes most of a start, and then waits for a line
// on standard input. The end of the input ends the process, so that none is left behind by tests that were killed.

await Promise.all([import('../../../src/app.ts'), import('../../../src/wiring/deps.ts')]);
const mayStart = await Promise.race([
  once(process.stdin, 'data').then(() => true),
  once(process.stdin, 'end').then(() => false),
]);
if (!mayStart) process.exit(0);
process.stdin.destroy();

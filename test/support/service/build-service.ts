import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/**
 * Builds the service before the tests, which start it as `npm start` does, and the other programs that they start often. A process of its own builds: the
 * bundler's 700 MB would stay with Vitest until the last test.
 */
export default async function buildService(): Promise<void> {
  await promisify(execFile)(process.execPath, ['test/support/service/build-programs.ts']);
}

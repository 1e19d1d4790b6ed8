import { writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../../dev/child.ts';

/**
 * A free port that no other test of this run is given. A program that is killed and started again would otherwise find the port of its first start taken
 * by another test's service, whose answers look like its own.
 */
export async function ownPort(): Promise<number> {
  for (;;) {
    const port = await freePort();
    if (isFirst(port)) return port;
  }
}

/** Whether this is the first draw of the port. The run's temporary folder, which all workers share, has a file for each. */
function isFirst(port: number): boolean {
  try {
    writeFileSync(join(tmpdir(), `port-${port}`), '', { flag: 'wx' });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    return false;
  }
}

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Does work in a folder of its own and deletes it: Spin writes files where it runs. */
export async function inOwnFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'percall-model-'));
  try {
    return await work(folder);
  } finally {
    await rm(folder, { recursive: true });
  }
}

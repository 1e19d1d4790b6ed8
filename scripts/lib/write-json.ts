import { rename, rm, writeFile } from 'node:fs/promises';

/** Writes a JSON file that is there whole or not at all: whoever waits for it may read it the moment it appears. Only its owner may. */
export async function writeJsonAtomically(path: string, value: unknown): Promise<void> {
  const draft = `${path}.${process.pid}.tmp`;
  try {
    await writeFile(draft, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600 });
    await rename(draft, path);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}

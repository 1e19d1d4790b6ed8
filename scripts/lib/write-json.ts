import { rename, rm, writeFile } from 'node:fs/promises';

/** Writes a JSON file atomically, so that a waiting process can read it as soon as it exists. Only its owner may read it. */
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

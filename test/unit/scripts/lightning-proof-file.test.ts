import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { readProof, saveProof } from '../../../cli/lightning/lightning-proof-file.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'percall-proof-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

test('two proofs have two files, whatever their payment hashes have in common', async () => {
  const proofOf = (end: string, path: string) => ({
    ...({ protocol: 'x402', url: `http://seller.test/${path}`, invoice: 'lnbc1', preimage: null } as const),
    paymentHash: 'ab'.repeat(31) + end,
    resource: undefined,
    accepted: {},
  });
  const first = await saveProof(proofOf('01', 'a'), folder);
  const second = await saveProof(proofOf('02', 'b'), folder);
  expect((await readProof(first)).url).toBe('http://seller.test/a');
  expect((await readProof(second)).url).toBe('http://seller.test/b');
});

import { bytesToHex } from '../lib/hex.ts';
import { CONTRACTS_PER_REQUEST, readCodes } from './code.ts';
import type { CollectorContext } from './context.ts';
import { nextLook } from './next-look.ts';

/** Bytes of EIP-1167's minimal proxy. Its target stands in the code, and everywhere else the code says nothing new. */
const MINIMAL_PROXY_BYTES = 45;

/**
 * Looks again at the contracts that are due, at most one request's worth: a proxy's target and a token's symbol may be set after the creation.
 * Resolves to false when there was nothing to do. After a failure the same contracts are due the next time.
 */
export async function readLateLabels(context: CollectorContext): Promise<boolean> {
  const { fillChain, lookups, writes, describeCode, signal } = context;
  const now = lookups.newestAt();
  if (describeCode === null || now === null) return false;
  const due = lookups.dueLooks(now, CONTRACTS_PER_REQUEST);
  if (due.length === 0) return false;
  const addresses = due.map(({ address }) => bytesToHex(address));
  const clones = addresses.filter((_, at) => due[at]?.codeBytes === MINIMAL_PROXY_BYTES);
  const codes = clones.length === 0 ? [] : await readCodes(context, clones);
  const codeOf = new Map(clones.map((address, at) => [address, codes[at] ?? null]));
  const described = await describeCode(
    due.map(({ codeHash }, at) => {
      const address = addresses[at] ?? '0x';
      return { address, code: codeOf.get(address) ?? null, codeHash: bytesToHex(codeHash) };
    }),
    fillChain,
    signal,
  );
  writes.storeLabels(
    due.map(({ block, transactionHash, at: createdAt }, at) => {
      const { label = null, kinds = 0 } = described[at] ?? {};
      return { block, transactionHash, label, kinds, lookAt: nextLook(createdAt, kinds, now) };
    }),
  );
  return true;
}

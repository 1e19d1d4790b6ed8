import { askChecked, Contradiction, dataOf, resultOrRefusal } from '../chain/rpc/checked.ts';
import { toQuantity } from '../chain/rpc/wire.ts';
import { bytesToHex, hexToBytes } from '../lib/hex.ts';
import { keccak256 } from '../lib/secp256k1.ts';
import { type CollectorContext, noteRefused } from './context.ts';
import { nextLook } from './next-look.ts';

/** Contracts whose code is read in one request; at 24 KiB each, EIP-170's cap, an answer stays below 2.5 MB. */
export const CONTRACTS_PER_REQUEST = 50;

/** Reads the code of the newest contracts without code, and describes them. A contract whose code no node gives stays pending. */
export async function readPendingCode(context: CollectorContext): Promise<void> {
  const { fillChain, lookups, writes, state, describeCode, signal } = context;
  const pending = lookups.pendingCode(CONTRACTS_PER_REQUEST);
  if (pending.length < CONTRACTS_PER_REQUEST) state.codeIsPending = false;
  if (pending.length === 0) return;
  const addresses = pending.map(({ address }) => bytesToHex(address));
  try {
    const codes = await readCodes(context, addresses);
    const deployed = pending.map(({ block, transactionHash, at: createdAt }, at) => {
      const code = hexToBytes(codes[at] ?? '0x');
      return { block, transactionHash, createdAt, code, hash: keccak256(code) };
    });
    const described = await describeCode?.(
      deployed.map(({ code, hash }, at) => ({
        address: addresses[at] ?? '0x',
        code: bytesToHex(code),
        codeHash: bytesToHex(hash),
      })),
      fillChain,
      signal,
    );
    const now = lookups.newestAt() ?? 0;
    writes.storeCode(
      deployed.map(({ block, transactionHash, createdAt, code, hash }, at) => {
        const { label = null, kinds = null } = described?.[at] ?? {};
        // A contract that was destroyed in its own transaction has no code to compare.
        const [codeHash, lookAt] = code.length === 0 ? [null, null] : [hash, nextLook(createdAt, kinds, now)];
        return { block, transactionHash, codeBytes: code.length, codeHash, label, kinds, lookAt };
      }),
    );
  } catch (error) {
    state.codeIsPending = true;
    throw error;
  }
}

/**
 * The code of each contract, from a provider that has all of them. It is read at the block before the one that the head loop reads next: no stored
 * contract is newer. At `latest`, a node whose head is older than a contract would answer that it has no code.
 */
export async function readCodes(
  context: CollectorContext,
  addresses: readonly `0x${string}`[],
): Promise<`0x${string}`[]> {
  const { next } = context.state;
  const block = next === null ? 'latest' : toQuantity(next - 1);
  return askChecked(
    context.fillChain,
    addresses.map((address) => ({ method: 'eth_getCode', params: [address, block] })),
    (outcomes) =>
      outcomes.map((outcome) => {
        const result = resultOrRefusal(outcome);
        if (result === undefined) throw new Contradiction('missing', 'gave no code');
        return dataOf(result, 'code');
      }),
    { onRefused: (reason) => noteRefused(context, reason) },
  );
}

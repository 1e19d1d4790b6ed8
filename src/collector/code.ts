import { dataOf } from '../chain/fields.ts';
import { askChecked, Contradiction, resultOrRefusal } from '../chain/rpc/checked.ts';
import { bytesToHex, hexToBytes } from '../lib/hex.ts';
import { keccak256 } from '../lib/secp256k1.ts';
import { type CollectorContext, noteRefused } from './context.ts';

/** Contracts whose code is read in one request; at 24 KiB each, EIP-170's cap, an answer stays below 2.5 MB. */
const CONTRACTS_PER_REQUEST = 50;

/** Reads the code of the newest contracts without code, and describes them. A contract whose code no node gives stays pending. */
export async function readPendingCode(context: CollectorContext): Promise<void> {
  const { fillChain, lookups, writes, state, describeCode, signal } = context;
  const pending = lookups.pendingCode(CONTRACTS_PER_REQUEST);
  if (pending.length < CONTRACTS_PER_REQUEST) state.codeIsPending = false;
  if (pending.length === 0) return;
  const addresses = pending.map(({ address }) => bytesToHex(address));
  try {
    const codes = await askChecked(
      fillChain,
      addresses.map((address) => ({ method: 'eth_getCode', params: [address, 'latest'] })),
      (outcomes) =>
        outcomes.map((outcome) => {
          const result = resultOrRefusal(outcome);
          if (result === undefined) throw new Contradiction('missing', 'gave no code');
          return dataOf(result, 'code');
        }),
      { onRefused: (reason) => noteRefused(context, reason) },
    );
    const deployed = pending.map(({ block, transactionHash }, at) => {
      const code = hexToBytes(codes[at] ?? '0x');
      return { block, transactionHash, code, hash: keccak256(code) };
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
    writes.storeCode(
      deployed.map(({ block, transactionHash, code, hash }, at) => ({
        block,
        transactionHash,
        codeBytes: code.length,
        // A contract that was destroyed in its own transaction has no code to compare.
        codeHash: code.length === 0 ? null : hash,
        label: described?.[at] ?? null,
      })),
    );
  } catch (error) {
    state.codeIsPending = true;
    throw error;
  }
}

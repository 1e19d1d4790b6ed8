import { labelContracts } from '../chain/contracts.ts';
import { Contradiction, dataOf, resultOrRefusal } from '../chain/rpc/checked.ts';
import { toQuantity } from '../chain/rpc/wire.ts';
import { bytesToHex, hexToBytes } from '../lib/hex.ts';
import { keccak256 } from '../lib/secp256k1.ts';
import { askCounted, type CollectorContext, type DescribeCode } from './context.ts';
import type { DeployReads } from './store/accounts.ts';
import { DeployKinds } from './store/rows.ts';

// The code and label of new contracts, so that no buyer's request waits for them.

/** At EIP-170's 24 KiB each an answer stays below 2.5 MB. */
const CONTRACTS_PER_REQUEST = 50;

/** Of the newest contracts first. Where no node gives the code, it stays pending. */
export async function readPendingCode(context: CollectorContext): Promise<void> {
  const { chain, lookups, writes, state, describeCode, signal } = context;
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
      chain,
      signal,
    );
    const now = lookups.newestAt() ?? 0;
    writes.storeCode(
      deployed.map(({ block, transactionHash, createdAt, code, hash }, at) => {
        const { label = null, kinds = null } = described?.[at] ?? {};
        // Destroyed in its own transaction, it has no code to compare.
        const [codeHash, lookAt] = code.length === 0 ? [null, null] : [hash, nextLook(createdAt, kinds, now)];
        return { block, transactionHash, codeBytes: code.length, codeHash, label, kinds, lookAt };
      }),
    );
  } catch (error) {
    state.codeIsPending = true;
    throw error;
  }
}

/** Before the head loop's next block: no stored contract is newer. At `latest` a node behind has no code. */
async function readCodes(context: CollectorContext, addresses: readonly `0x${string}`[]): Promise<`0x${string}`[]> {
  const { next } = context.state;
  const block = next === null ? 'latest' : toQuantity(next - 1);
  const calls = addresses.map((address) => ({ method: 'eth_getCode', params: [address, block] }));
  return askCounted(context, calls, (outcomes) =>
    outcomes.map((outcome) => {
      const result = resultOrRefusal(outcome);
      if (result === undefined) throw new Contradiction('missing', 'gave no code');
      return dataOf(result, 'code');
    }),
  );
}

/** EIP-1167's minimal proxy: its target stands in the code. Other code says nothing new. */
const MINIMAL_PROXY_BYTES = 45;

/** Targets and symbols may come late. False without work. Failures stay due. */
export async function readLateLabels(context: CollectorContext): Promise<boolean> {
  const { chain, lookups, writes, describeCode, signal } = context;
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
    chain,
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

/** Ages in seconds: most contracts are set up by the next transactions, some by hand that day. */
const LOOKS = [60, 900, 21_600];

/** In Unix seconds. Null: no more, or it has its symbol. `now` is the chain's time. */
export function nextLook(createdAt: number, kinds: number | null, now: number): number | null {
  if (kinds === null || (kinds & DeployKinds.token) !== 0) return null;
  const age = LOOKS.find((seconds) => createdAt + seconds > now);
  return age === undefined ? null : createdAt + age;
}

/** What `labelContracts` finds, and another contract with the same code. */
export function createDescribeCode(reads: Pick<DeployReads, 'withCode'>): DescribeCode {
  return async (deploys, chain, signal) => {
    const labels = await labelContracts(chain, deploys, { signal });
    // Newest first: the oldest of several contracts with one code stays.
    const oldest = new Map(deploys.map(({ codeHash, address }) => [codeHash, address]));
    return deploys.map(({ address, code, codeHash }, at) => {
      const twin = code === '0x' ? null : (reads.withCode(hexToBytes(codeHash), address) ?? oldest.get(codeHash));
      const { text = null, isToken = false, isProxy = false } = labels[at] ?? {};
      const parts = [text, twin && twin !== address ? `same code as ${twin}` : null].filter((part) => part != null);
      const kinds = (isToken ? DeployKinds.token : 0) | (isProxy ? DeployKinds.proxy : 0);
      return { label: parts.length === 0 ? null : parts.join(', '), kinds };
    });
  };
}

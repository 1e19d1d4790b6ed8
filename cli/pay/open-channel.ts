import { mkdir } from 'node:fs/promises';
import { computeChannelId } from '@x402/evm/batch-settlement/client';
import { FileClientChannelStorage } from '@x402/evm/batch-settlement/client/file-storage';
import { createChannelClient } from './channel-client.ts';
import type { BuyableOffer } from './offer.ts';
import { formatUsdc } from './usdc.ts';

export interface ChannelTerms {
  readonly privateKey: `0x${string}`;
  /** The folder with the records of the channels. It is made where it is missing. */
  readonly directory: string;
  /** The most that this call deposits, in base units. */
  readonly maxDeposit: bigint;
  /** Where the client reads the channel; null: its record alone counts. */
  readonly rpcUrl: string | null;
}

/** Time-out of the provider's answer, in milliseconds. */
const RPC_MS = 60_000;

/**
 * Opens the buyer's record of the offer's channel, with the official client that signs for it. With `rpcUrl` the record has the deposits that are on the
 * chain. Throws when `rpcUrl` gives no answer, and when it is of another chain.
 */
export async function openChannel({ requirement, amountUnits }: BuyableOffer, { directory, ...terms }: ChannelTerms) {
  const network = requirement.network as `eip155:${string}`;
  if (terms.rpcUrl !== null) await checkChain(terms.rpcUrl, network);
  // The records hold signed vouchers.
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const storage = new FileClientChannelStorage({ directory });
  const { asset } = requirement;
  const { client, scheme, balanceOnChain } = createChannelClient({
    ...terms,
    network,
    asset,
    maxUnits: amountUnits,
    storage,
  });
  const id = computeChannelId(scheme.buildChannelConfig(requirement), network);
  const record = await storage.get(id);
  // The client reads the chain only where it has no record. A deposit that was made unheard is missing in the record, and would be made again.
  if (terms.rpcUrl !== null && record) {
    const onChain = await balanceOnChain(id).catch((cause: unknown) => {
      throw new Error('RPC_URL does not tell the balance of the channel; nothing was signed', { cause });
    });
    // A provider may lag behind a deposit that the record has.
    if (onChain > BigInt(record.balance ?? 0)) await storage.set(id, { ...record, balance: onChain.toString() });
  }

  return {
    client,
    scheme,
    id,
    /** The record as it is. */
    record: () => storage.get(id),
    /** Puts a record back. */
    keep: (kept: NonNullable<typeof record>) => storage.set(id, kept),
    /** What the record says is charged, in base units. */
    charged: async (): Promise<bigint> => BigInt((await storage.get(id))?.chargedCumulativeAmount ?? 0),
    /** What the record says is deposited, less what was paid back, in base units. */
    deposited: async (): Promise<bigint> => BigInt((await storage.get(id))?.balance ?? 0),
    /**
     * Adds a deposit in base units to the record's balance, and leaves the charges as they are. With `before`, only while the balance is still that: the
     * client notes no deposit where the receipt states other charges than the record.
     */
    noteDeposit: async (units: bigint, before?: bigint): Promise<void> => {
      const { balance = '0', chargedCumulativeAmount = '0', ...more } = (await storage.get(id)) ?? {};
      if (before !== undefined && BigInt(balance) !== before) return;
      await storage.set(id, { ...more, chargedCumulativeAmount, balance: (BigInt(balance) + units).toString() });
    },
    /** What the record says is left, as text. */
    left: async (): Promise<string> => {
      const known = await storage.get(id);
      return `${known?.balance === undefined ? 'unknown,' : formatUsdc(leftIn(known))} in channel ${id}`;
    },
  };
}

/** What a record says is left, in base units. */
export const leftIn = ({ balance = '0', chargedCumulativeAmount = '0' }): bigint =>
  BigInt(balance) - BigInt(chargedCumulativeAmount);

/** Throws unless the endpoint is on the seller's chain. A channel of another chain would be read as empty. */
async function checkChain(rpcUrl: string, network: string): Promise<void> {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_chainId', params: [] });
  const headers = { 'content-type': 'application/json' };
  const signal = AbortSignal.timeout(RPC_MS);
  const answer = await fetch(rpcUrl, { method: 'POST', headers, body, signal })
    .then((response) => response.json() as Promise<{ result?: unknown }>)
    .catch((cause: unknown) => {
      throw new Error('RPC_URL gives no answer; nothing was signed', { cause });
    });
  const found = typeof answer.result === 'string' ? `eip155:${Number(answer.result)}` : 'no chain';
  if (found !== network) throw new Error(`RPC_URL is on ${found}, the offer on ${network}; nothing was signed`);
}

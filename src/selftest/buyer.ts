import { ExactEvmScheme } from '@x402/evm/exact/client';
import { decodePaymentResponseHeader, wrapFetchWithPayment, x402Client } from '@x402/fetch';
import type { Hex, Log } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { encodeFunctionData, parseAbi, parseEventLogs } from 'viem/utils';
import { z } from 'zod';
import type { ChainClient } from '../chain/rpc/client.ts';
import { account, data, index, parseAnswer, resultOf, toQuantity, word } from '../chain/rpc/wire.ts';
import { UpstreamFailed } from '../errors.ts';
import type { Clock } from '../lib/clock.ts';

// The self-test's buyer, and its eyes on the chain. Neither uses our payment code, because that code is under test.

/** What may be bought, and from whom. The client refuses to sign anything else. */
interface BuyerTerms {
  readonly privateKey: `0x${string}`;
  readonly network: `eip155:${number}`;
  readonly asset: `0x${string}`;
  readonly seller: `0x${string}`;
}

interface Bought {
  /** Null: no answer came, or only a part of it. */
  readonly status: number | null;
  /** Of the authorization that was signed and presented, which is not kept; null when none was. */
  readonly nonce: `0x${string}` | null;
  /** Its hash, from a receipt of success. */
  readonly transaction: `0x${string}` | null;
  /** From the first request to the last byte. */
  readonly latencyMs: number;
  readonly fault: 'unreachable' | 'terms_refused' | null;
}

/** The service cannot be reached under its public URL. */
class Unreachable extends Error {}

/** Signs only for the given asset and seller, and follows no redirect: a wrong public URL must not cost the wallet. */
export function createStockBuyer({ privateKey, network, asset, seller }: BuyerTerms) {
  const account = privateKeyToAccount(privateKey);

  /** Gets a URL and pays at most `maxUnits`. Rejects only with the signal's reason, when it aborts. */
  async function buy(url: string, maxUnits: bigint, signal: AbortSignal): Promise<Bought> {
    let nonce: Bought['nonce'] = null;
    const client = new x402Client()
      .register(network, new ExactEvmScheme(account))
      .setSpendControls({ allowedAssets: [{ network, asset, maxAmountPerPayment: String(maxUnits) }] })
      .registerPolicy((_version, offers) => offers.filter(({ payTo }) => payTo.toLowerCase() === seller.toLowerCase()))
      .onAfterPaymentCreation(async ({ paymentPayload }) => {
        nonce = (paymentPayload.payload as { authorization: { nonce: `0x${string}` } }).authorization.nonce;
      });
    const began = performance.now();
    const ended = (answer: Partial<Bought>): Bought => {
      const latencyMs = Math.round(performance.now() - began);
      return { status: null, nonce, transaction: null, latencyMs, fault: null, ...answer };
    };
    try {
      const answer = await wrapFetchWithPayment(reach, client)(url, { signal, redirect: 'error' });
      await answer.arrayBuffer().catch(unreachable);
      return ended({ status: answer.status, transaction: transactionOf(answer.headers) });
    } catch (error) {
      signal.throwIfAborted();
      return ended({ fault: error instanceof Unreachable ? 'unreachable' : 'terms_refused' });
    }
  }

  return { address: account.address.toLowerCase() as `0x${string}`, buy };
}

export type StockBuyer = ReturnType<typeof createStockBuyer>;

/** Marks errors of the connection, which differ from a refusal by the client. */
const reach: typeof fetch = (input, init) => fetch(input, init).catch(unreachable);

function unreachable(cause: unknown): never {
  throw new Unreachable('no answer', { cause });
}

function transactionOf(headers: Headers): `0x${string}` | null {
  try {
    const { success, transaction } = decodePaymentResponseHeader(headers.get('payment-response') ?? '');
    return success && /^0x[0-9a-fA-F]{64}$/.test(transaction) ? (transaction.toLowerCase() as `0x${string}`) : null;
  } catch {
    return null;
  }
}

const abi = parseAbi([
  'event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)',
  'event Transfer(address indexed from, address indexed to, uint256 value)',
  'function authorizationState(address authorizer, bytes32 nonce) view returns (bool)',
  'function balanceOf(address account) view returns (uint256)',
]);

/** A block of Arc takes half a second. */
const POLL_MS = 500;

interface WalletReadsOptions {
  readonly chain: ChainClient;
  readonly usdc: Hex;
  readonly wallet: Hex;
  readonly seller: Hex;
  readonly clock: Clock;
}

const receipt = z
  .object({
    status: z.string(),
    blockNumber: index,
    logs: z.array(z.object({ address: account, topics: z.array(word), data })),
  })
  .nullable();
type Receipt = NonNullable<z.output<typeof receipt>>;

/** Every figure is of a named block, as providers differ in height. One that is behind is asked until the abort. */
export function createWalletReads({ chain, usdc, wallet, seller, clock }: WalletReadsOptions) {
  async function persist<T>(read: () => Promise<T | null>, signal: AbortSignal): Promise<T> {
    for (;;) {
      const value = await read().catch((error: unknown) => {
        signal.throwIfAborted();
        if (error instanceof UpstreamFailed) return null;
        throw error;
      });
      if (value !== null) return value;
      await clock.sleep(POLL_MS, signal);
    }
  }

  const balanceOf = encodeFunctionData({ abi, functionName: 'balanceOf', args: [wallet] });
  const head = async (signal: AbortSignal) =>
    parseAnswer(index, await chain.request('eth_blockNumber', [], { signal }), 'block number');

  return {
    head: (signal: AbortSignal) => persist(() => head(signal), signal),
    /** Returns when the provider has this block. */
    untilBlock: async (block: number, signal: AbortSignal): Promise<void> => {
      await persist(async () => ((await head(signal)) >= block ? true : null), signal);
    },
    /** At the end of a block: the USDC in base units, and whether the contract has used each nonce. */
    at: (block: number, nonces: readonly Hex[], signal: AbortSignal) =>
      persist(async () => {
        const states = nonces.map((nonce) =>
          encodeFunctionData({ abi, functionName: 'authorizationState', args: [wallet, nonce] }),
        );
        const calls = [balanceOf, ...states].map((data) => ({
          method: 'eth_call',
          params: [{ to: usdc, data }, toQuantity(block)],
        }));
        const answers = await chain.batch(calls, { signal });
        const [balance = 0n, ...used] = answers.map((answer) =>
          BigInt(parseAnswer(word, resultOf(answer, 'the wallet'), 'word')),
        );
        return { balance, used: used.map((state) => state !== 0n) };
      }, signal),
    /** A transaction's block, and whether it moved exactly this price from wallet to seller by this authorization. */
    payment: async (transaction: Hex, nonce: Hex, units: bigint, signal: AbortSignal) => {
      const mined = await persist(
        async () =>
          parseAnswer(receipt, await chain.request('eth_getTransactionReceipt', [transaction], { signal }), 'receipt'),
        signal,
      );
      return { block: mined.blockNumber, holds: holds(ownEvents(mined, usdc), { wallet, seller, nonce, units }) };
    },
  };
}

export type WalletReads = ReturnType<typeof createWalletReads>;

function same(one: Hex, other: Hex): boolean {
  return one.toLowerCase() === other.toLowerCase();
}

/** The token's own logs of a successful transaction. */
function ownEvents({ status, logs }: Receipt, usdc: Hex) {
  if (status !== '0x1') return [];
  const own = logs.filter(({ address }) => address === usdc);
  return parseEventLogs({ abi, logs: own as unknown as Log[] }).map(({ args }) => args);
}

interface Paid {
  readonly wallet: Hex;
  readonly seller: Hex;
  readonly nonce: Hex;
  readonly units: bigint;
}

/** Whether the authorization's use is followed, before any other use, by the transfer of the price. */
function holds(events: ReturnType<typeof ownEvents>, { wallet, seller, nonce, units }: Paid): boolean {
  const used = events.findIndex((event) => 'nonce' in event && event.nonce === nonce && same(event.authorizer, wallet));
  if (used < 0) return false;
  const after = events.slice(used + 1);
  const end = after.findIndex((event) => 'nonce' in event);
  return after
    .slice(0, end < 0 ? undefined : end)
    .some((event) => 'value' in event && same(event.from, wallet) && same(event.to, seller) && event.value === units);
}

import { z } from 'zod';
import type { ChainClient } from '../../chain/rpc/client.ts';
import { UpstreamFailed } from '../../errors.ts';
import { type Clock, nowSeconds } from '../../lib/clock.ts';
import type { Common } from '../../lib/common.ts';
import { bytesToHex, hexToBytes } from '../../lib/hex.ts';
import { shareRun } from '../../lib/tasks.ts';
import { jsonOrNull } from '../../lib/untrusted.ts';
import type { Payment } from '../../store/ports/payments.ts';
import type { DueTransfer, GatewayTransferStore, TransferNote } from '../../store/ports/stores.ts';
import type { Upstream } from '../../upstream/client/client.ts';
import type { Ledger } from '../ledger.ts';
import {
  type Authorization,
  type BookVerdict,
  EXPIRED,
  type Found,
  NONCE_USED,
  type RailBooks,
  transactionText,
  transferIdBytes,
} from '../settler.ts';
import { readReceipts } from './books.ts';
import type { TransactionReceipt } from './evidence.ts';
import { type FacilitatorClient, readReply, supportedKinds, UNHEARD } from './facilitator.ts';
import { AUTHORIZATION_USED, TRANSFER, topicOf } from './token.ts';

// Circle's Gateway over our own HTTP client: its API, the evidence of a payment, the batches' transactions, the books.
// Circle's client sets no time limit, hides a failure's status, quotes whole answers and looks up no transfer.

/** Arc in Circle's own numbering of chains. */
const ARC_DOMAIN = 26;
/** Whole USDC and at most six significant decimal places. */
const DECIMAL_USDC = /^\d{1,30}(\.\d{1,6}0*)?$/;

const transfer = z.object({
  id: z.string(),
  status: z.enum(['received', 'batched', 'confirmed', 'completed', 'failed']),
  sendingNetwork: z.string().nullish(),
  recipientNetwork: z.string().nullish(),
  fromAddress: z.string(),
  toAddress: z.string(),
  amount: z.string(),
  nonce: z.string().nullish(),
  txHash: z.string().nullish(),
});

/** States in order: received, batched, confirmed, completed; or failed. */
export type GatewayTransfer = z.output<typeof transfer>;

interface GatewayClient extends FacilitatorClient {
  /** Null for none. Rejects when the Gateway does not say. */
  transfer(id: string): Promise<GatewayTransfer | null>;
  /** With this payer and nonce: none or one, if the service filters. Rejects when the Gateway does not say. */
  search(from: string, nonce: string): Promise<readonly GatewayTransfer[]>;
  /** What depositors can spend, in USDC base units, in their order. Rejects when that cannot be read. */
  balances(depositors: readonly string[]): Promise<readonly bigint[]>;
  /** The reason against a payment's form, or null. It checks no balance. Rejects when the Gateway does not say. */
  verify(request: Parameters<FacilitatorClient['settle']>[0], signal: AbortSignal): Promise<string | null>;
}

const found = z.object({ transfers: z.array(transfer) });
const deposits = z.object({
  balances: z.array(z.object({ domain: z.number(), depositor: z.string(), balance: z.string().regex(DECIMAL_USDC) })),
});
const verdict = z.object({ isValid: z.boolean(), invalidReason: z.string().nullish().catch(null) });
const WORD = /^[a-z][a-z0-9_]{2,63}$/;

interface GatewayClientOptions {
  upstream: Upstream;
  url: string;
  token: string | null;
  network: string;
}

export function createGatewayClient({ upstream, url, token, network }: GatewayClientOptions): GatewayClient {
  const headers: Record<string, string> = token === null ? {} : { Authorization: `Bearer ${token}` };
  const base = `${url}/v1/x402`;
  const post = (path: string, body: object, signal: AbortSignal) =>
    upstream.fetch({
      url: `${base}/${path}`,
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify(body),
      signal,
    });

  return {
    settle: async (request, _id, signal) => {
      try {
        const { status, body } = await post('settle', request, signal);
        return readReply(status, jsonOrNull(body), network);
      } catch {
        return UNHEARD;
      }
    },
    verify: async (request, signal) => {
      const { status, body } = await post('verify', request, signal);
      const parsed = verdict.safeParse(jsonOrNull(body));
      if (status >= 500 || !parsed.success)
        throw new UpstreamFailed(upstream.name, 'did not say whether a payment is valid');
      const { isValid, invalidReason } = parsed.data;
      if (isValid) return null;
      return invalidReason && WORD.test(invalidReason) ? invalidReason : 'invalid_payload';
    },
    balances: async (depositors) => {
      const sources = depositors.map((depositor) => ({ domain: ARC_DOMAIN, depositor }));
      const headersOfPost = { ...headers, 'content-type': 'application/json' };
      const body = JSON.stringify({ token: 'USDC', sources });
      const asked = { url: `${url}/v1/balances`, method: 'POST', headers: headersOfPost, body } as const;
      const answer = await upstream.json(asked, deposits);
      if (answer === null) throw new UpstreamFailed(upstream.name, 'has no balances');
      const here = answer.balances.filter(({ domain }) => domain === ARC_DOMAIN);
      const byDepositor = new Map(here.map(({ depositor, balance }) => [depositor.toLowerCase(), unitsOf(balance)]));
      // The answer may omit an account that never deposited.
      return depositors.map((depositor) => byDepositor.get(depositor.toLowerCase()) ?? 0n);
    },
    transfer: (id) => upstream.json({ url: `${base}/transfers/${encodeURIComponent(id)}`, headers }, transfer),
    search: async (from, nonce) => {
      const query = new URLSearchParams({ from, nonce });
      const answer = await upstream.json({ url: `${base}/transfers?${query}`, headers }, found);
      if (answer === null) throw new UpstreamFailed(upstream.name, 'has no search for transfers');
      return answer.transfers;
    },
    supported: () => supportedKinds(upstream, `${base}/supported`, headers),
  };
}

/** USDC base units of whole USDC. */
function unitsOf(decimal: string): bigint {
  const [whole = '0', fraction = ''] = decimal.split('.');
  return BigInt(whole + fraction.slice(0, 6).padEnd(6, '0'));
}

/** The Gateway may still record a transfer for so long after its authorization has expired. */
const EXPIRY_MARGIN_SECONDS = 60n;
/** The Gateway reports no block. Block 0 of the chain holds no payment. */
const NO_BLOCK = 0;

/** Paid is what the Gateway has accepted: then the payer's balance is locked, and the Gateway guarantees the batch. */
export function createGatewayEvidence(client: Pick<GatewayClient, 'search'>, network: string, clock: Clock) {
  /** None with this payer and nonce: open, or failed once expired. Several or unreadable ones: unknown. */
  async function lookup(authorization: Authorization): Promise<Found> {
    const { from, nonce } = authorization;
    const transfers = await client.search(bytesToHex(from), bytesToHex(nonce));
    const [transfer, ...others] = transfers;
    if (others.length > 0) return { kind: 'unknown' };
    if (!transfer) return absent(authorization, BigInt(nowSeconds(clock)));
    if (!isOf(transfer, authorization)) return { kind: 'unknown' };
    if (transfer.status === 'failed') return { kind: 'failed', reason: 'unexpected_settle_error' };
    const paid = readUnits(transfer.amount);
    if (paid === null) return { kind: 'unknown' };
    if (paid !== authorization.value || !isHere(transfer, authorization, network))
      return { kind: 'failed', reason: NONCE_USED };
    const transaction = transferIdBytes(transfer.id);
    return transaction ? { kind: 'settled', transaction, block: NO_BLOCK, paid } : { kind: 'unknown' };
  }

  return {
    lookup,
    /** Whether the Gateway has any transfer with this payer and nonce. Rejects when the Gateway does not say. */
    isUsed: async ({ from, nonce }: Authorization): Promise<boolean> =>
      (await client.search(bytesToHex(from), bytesToHex(nonce))).length > 0,
  };
}

function absent({ validBefore }: Authorization, now: bigint): Found {
  if (now < validBefore + EXPIRY_MARGIN_SECONDS) return { kind: 'open' };
  return { kind: 'failed', reason: EXPIRED };
}

function isOf(transfer: GatewayTransfer, { from, nonce }: Authorization): boolean {
  const sameNonce = !transfer.nonce || transfer.nonce.toLowerCase() === bytesToHex(nonce);
  return sameNonce && transfer.fromAddress.toLowerCase() === bytesToHex(from);
}

function isHere(transfer: GatewayTransfer, { to }: Authorization, network: string): boolean {
  const here = [transfer.sendingNetwork, transfer.recipientNetwork].every(
    (name) => !name?.startsWith('eip155:') || name === network,
  );
  return here && transfer.toAddress.toLowerCase() === bytesToHex(to);
}

/** USDC base units, from an integer of them or a decimal of whole USDC. Null for any other text. */
function readUnits(amount: string): bigint | null {
  const parts = /^(\d{1,30})(?:\.(\d{1,6})0*)?$/.exec(amount);
  if (!parts) return null;
  const [, whole = '0', fraction] = parts;
  return fraction === undefined ? BigInt(whole) : BigInt(whole + fraction.padEnd(6, '0'));
}

/** Transfers of one round. The Gateway does not publish its limits. */
const ROUND = 20;
/** Milliseconds between lookups, doubled up to an hour. The Gateway does not publish how often it sends batches. */
const FIRST_AGAIN_MS = 5000;
const LONGEST_AGAIN_MS = 3_600_000;
/** About a month of hourly lookups. */
const MAX_CHECKS = 750;
const HASH = /^0x[0-9a-f]{64}$/i;

/** Rounds never overlap. A transfer that fails after its acceptance has cost us an answer: it is logged as an error. */
export function createGatewayBatches(
  { clock, log }: Common,
  client: Pick<GatewayClient, 'transfer'>,
  store: Pick<GatewayTransferStore, 'due' | 'note'>,
) {
  async function lookUp(transfer: DueTransfer): Promise<TransferNote> {
    const id = transactionText(transfer.transferId) ?? '';
    const again = nextCheck(transfer.checks, clock.nowMs());
    const found = await client.transfer(id).catch((error) => {
      log.warn({ err: error, payment: transfer.paymentId }, 'a Gateway transfer could not be looked up');
      return null;
    });
    if (found?.id.toLowerCase() !== id) return { status: null, transaction: null, nextCheckAt: again };
    const { status, txHash } = found;
    const transaction = txHash && HASH.test(txHash) ? hexToBytes(txHash) : null;
    if (status === 'failed')
      log.error({ payment: transfer.paymentId, transfer: id }, 'the Gateway failed a transfer that it had accepted');
    // Until a batch is confirmed, another transaction may replace it, so its hash may change.
    const final = status === 'failed' || (transaction !== null && status !== 'received' && status !== 'batched');
    return { status, transaction, nextCheckAt: final ? null : again };
  }

  async function round(): Promise<void> {
    for (const transfer of await store.due(clock.nowMs(), ROUND)) {
      await store.note(transfer.paymentId, await lookUp(transfer));
    }
  }

  return {
    /** A call during a round waits for that one. Rejects when the store cannot be read. */
    round: shareRun(round),
  };
}

function nextCheck(checks: number, now: number): number | null {
  return checks >= MAX_CHECKS ? null : now + Math.min(LONGEST_AGAIN_MS, FIRST_AGAIN_MS * 2 ** checks);
}

/** Payments of one batch that are added up. */
const MOST_IN_A_BATCH = 10_000;
/** Hex digits of one word, with its prefix: an amount and nothing else. */
const ONE_WORD = 66;

interface GatewayBooksOptions {
  readonly chain: Pick<ChainClient, 'batch'>;
  readonly transfers: Pick<GatewayTransferStore, 'get' | 'paymentsIn'>;
  readonly ledger: Pick<Ledger, 'get'>;
  /** In lower case. */
  readonly usdc: string;
  readonly wallet: string;
}

/**
 * A row has no transaction of ours. Its batch has one, which credits the recipient with the sum of many rows. If less,
 * rows are missing in the order of ids. Unread: no batch yet, no receipt by two, or no readable credit.
 */
export function createGatewayBooks({ chain, transfers, ledger, usdc, wallet }: GatewayBooksOptions): RailBooks {
  function compareBatched(row: Payment, owed: bigint, receipt: TransactionReceipt): BookVerdict {
    if (receipt.status !== '0x1') return missing(row.amount, 'the transaction of its batch reverted');
    const credit = creditIn(receipt, row.payTo, { usdc, wallet });
    if (credit === null) return { kind: 'unread', detail: 'no credit can be read in its batch' };
    const lacks = owed - credit;
    if (lacks <= 0n) return { kind: 'shown' };
    return missing(least(lacks, row.amount), 'its batch credits less than its rows');
  }

  return {
    async compare(rows) {
      const known = await Promise.all(rows.map(({ id }) => transfers.get(id)));
      const batchOf = (at: number): Uint8Array | null => {
        const transfer = known[at];
        return transfer && !transfer.isOpen ? transfer.transaction : null;
      };
      const batches = rows.flatMap((_, at) => batchOf(at) ?? []);
      const receiptOf = await readReceipts(chain, batches, 0);
      const owedOf = new Map<string, ReadonlyMap<string, bigint>>();
      const verdicts: BookVerdict[] = [];
      for (const [at, row] of rows.entries()) {
        const [transfer, batch] = [known[at], batchOf(at)];
        const receipt = batch ? receiptOf(batch) : null;
        if (!transfer) verdicts.push(missing(row.amount, 'the ledger has no transfer of it'));
        else if (transfer.status === 'failed' && !transfer.isOpen)
          verdicts.push(missing(row.amount, 'the Gateway failed its transfer'));
        else if (!batch) verdicts.push({ kind: 'unread', detail: 'its batch is not known yet' });
        else if (receipt === null || receipt === 'unread') verdicts.push(UNREAD);
        else {
          const key = bytesToHex(batch);
          const owed = owedOf.get(key) ?? (await owedIn(batch, { transfers, ledger }));
          owedOf.set(key, owed);
          verdicts.push(compareBatched(row, owed.get(row.id) ?? row.amount, receipt));
        }
      }
      return verdicts;
    },
  };
}

/** What a batch owes to each recipient, up to and with each of its rows. */
async function owedIn(
  batch: Uint8Array,
  { transfers, ledger }: Pick<GatewayBooksOptions, 'transfers' | 'ledger'>,
): Promise<ReadonlyMap<string, bigint>> {
  const sums = new Map<string, bigint>();
  const owed = new Map<string, bigint>();
  for (const id of await transfers.paymentsIn(batch, MOST_IN_A_BATCH)) {
    const row = await ledger.get(id);
    if (!row) continue;
    const payTo = bytesToHex(row.payTo);
    sums.set(payTo, (sums.get(payTo) ?? 0n) + row.amount);
    owed.set(id, sums.get(payTo) ?? 0n);
  }
  return owed;
}

const UNREAD: BookVerdict = { kind: 'unread', detail: 'the receipt of its batch cannot be read' };
const least = (a: bigint, b: bigint): bigint => (a < b ? a : b);
const missing = (amount: bigint, detail: string): BookVerdict => ({ kind: 'missing', amount, detail });

/**
 * The token's transfers to an address, or events of the Gateway's wallet that name it last and hold one amount,
 * whichever is more. From the first `AuthorizationUsed` on, transfers pay rows of their own. Null: none.
 */
function creditIn(
  { logs }: TransactionReceipt,
  payTo: Uint8Array,
  { usdc, wallet }: Pick<GatewayBooksOptions, 'usdc' | 'wallet'>,
): bigint | null {
  const to = topicOf(payTo);
  const credits: Record<string, bigint> = {};
  for (const { address, topics, data } of logs) {
    const emitter = address.toLowerCase();
    if (emitter === usdc && topics[0] === AUTHORIZATION_USED) break;
    const isTransfer = emitter === usdc && topics[0] === TRANSFER;
    if ((isTransfer || emitter === wallet) && topics.length > 1 && topics.at(-1) === to && data.length === ONE_WORD)
      credits[emitter] = (credits[emitter] ?? 0n) + BigInt(data);
  }
  let most: bigint | null = null;
  for (const sum of Object.values(credits)) if (most === null || sum > most) most = sum;
  return most;
}

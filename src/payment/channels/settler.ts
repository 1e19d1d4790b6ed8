import type { ChainClient } from '../../chain/rpc/client.ts';
import { data, type RpcOutcome, readOutcome } from '../../chain/rpc/wire.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Log } from '../../lib/common.ts';
import { bytesToHex, hexToBytes } from '../../lib/hex.ts';
import { allTried, createRounds } from '../../lib/tasks.ts';
import type { ChannelConfig } from '../../store/ports/channel-state.ts';
import type { Channel, ChannelStore } from '../../store/ports/channels.ts';
import type { RelayerMetrics } from '../relayer/gas.ts';
import type { BookVerdict, RailBooks, RailProbe, Settler, SettlerContext } from '../settler.ts';
import { createTransferBooks, forBooks, type ReceiptRead, readReceipts } from '../usdc/books.ts';
import type { Evidence, TransactionReceipt } from '../usdc/evidence.ts';
import { TRANSFER, topicOf } from '../usdc/token.ts';
import { channelEvents, channelIdCalldata } from './calldata.ts';
import { type ChannelSetup, createChannelPruning, createChannelReader } from './channel.ts';
import { claimBounds, createClaimAlarm, createWithdrawalAlarms, publishUnclaimed } from './claim-health.ts';
import { createClaims } from './claims.ts';
import { createRefundOperations } from './refund-sending.ts';
import { DEPOSIT_COLLECTOR, RAIL, type Scheme, SETTLEMENT, SETTLEMENT_BYTES } from './scheme.ts';
import { createWithdrawalWatch } from './withdrawals.ts';

// What settles channels, put together: our relayer, which sends deposits as any payment; the rounds of refunds, the
// watch, claims and pruning; the probe for the contracts, before which nothing is offered; and the books.

/** Milliseconds that a stop waits for the last claims: half of what a stop may take (`src/http/lifecycle.ts`). */
const LAST_CLAIMS_MS = 5000;

interface ChannelsSettlerOptions {
  readonly setup: ChannelSetup;
  readonly store: ChannelStore;
  readonly chain: ChainClient;
  readonly evidence: Evidence;
  readonly sender: `0x${string}`;
  readonly probe: () => Promise<RailProbe>;
  readonly metrics: RelayerMetrics | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

export function openChannelsSettler(options: ChannelsSettlerOptions, context: SettlerContext) {
  const { setup, store, chain, evidence, probe, metrics, clock, log } = options;
  const { channels, network, scheme, terms } = setup;
  const { receiver, token } = terms;
  const { withdrawDelaySeconds } = channels;
  const relayer = context.relayer(RAIL);
  const stopping = new AbortController();
  const reader = createChannelReader(chain);
  const parts = { ...options, network, scheme, relayer, reader, receiver, token, fencingToken: context.fencingToken };
  const bounds = claimBounds(channels);
  const alarms = createWithdrawalAlarms(clock);
  const alarm = createClaimAlarm({ clock, log }, store, network, bounds);
  const authorizerKey = hexToBytes(channels.authorizerKey);
  const claims = createClaims({ ...parts, relayer: alarm.watching(relayer), authorizerKey, bounds, alarms });
  if (metrics) publishUnclaimed(metrics, store, network, alarms);
  const refunds = createRefundOperations(parts);
  const claimDue = createRounds(() => alarm.round(() => claims.run(false, stopping.signal)), log);
  const prune = createChannelPruning(store, clock);
  const withdrawals = createWithdrawalWatch({ ...parts, alarms, withdrawDelaySeconds });

  const settler: Settler = {
    ...relayer,
    unavailable: () => relayer.unavailable() ?? alarm.why(),
    cannotSend: () => relayer.cannotSend() ?? alarm.why(),
    /** An instance of several sends no last claims: it gives its lease up first, and the next leader claims. */
    stop: async () => {
      stopping.abort();
      if (context.fencingToken === undefined) await claimLast(claims, options);
    },
    lookup: evidence.lookup,
    ownOnly: false,
    // Deposits are compared as transfers that the contract passed on, claims with what the contract recorded.
    books: {
      ...createTransferBooks({ chain, evidence, usdc: bytesToHex(token), passedTo: SETTLEMENT_BYTES }),
      ...createChannelBooks({ chain, store, network, receiver, token }),
    },
    probe: async () => {
      const why = alarm.whyStopped();
      return why === null ? probe() : { ok: false, detail: why };
    },
    load: async () => void refunds.keepRunning(stopping.signal),
    /** Reads nothing without the contracts. It does not wait for its claims: one may wait long for its block. */
    refresh: async () => {
      if (!(await probe()).ok) return;
      const watched = withdrawals.run();
      // After the watch, so that the claims see its withdrawals. A watch that fails stops no claims.
      void watched.catch(() => {}).then(claimDue);
      await allTried([watched, prune()]);
    },
  };
  return {
    settler,
    wake: () => void refunds.run().catch(() => {}),
    claimAll: async (signal: AbortSignal) => {
      const { ok, detail } = await probe();
      if (!ok) throw new Error(`payment channels cannot be claimed: ${detail}`);
      return claims.run(true, signal);
    },
  };
}

/** Claims what is open before a stop, as far as that is done in time. */
async function claimLast(
  claims: ReturnType<typeof createClaims>,
  { clock, log }: Pick<ChannelsSettlerOptions, 'clock' | 'log'>,
): Promise<void> {
  const late = new AbortController();
  const claimed = claims
    .run(true, late.signal)
    .catch((err) => log.warn({ err }, 'the last claims wait for the next start'));
  await Promise.race([claimed, clock.sleep(LAST_CLAIMS_MS, late.signal).catch(() => {})]);
  late.abort();
}

const UNREAD = 'the chain could not be read';

/**
 * Looks for the scheme's contracts, and for our channel id of `sample`. What was found stays found: it cannot be
 * replaced. Never rejects. One provider that finds none decides nothing: nobody would watch withdrawals then.
 */
export function createContractProbe(
  chain: Pick<ChainClient, 'each'>,
  scheme: Scheme,
  sample: ChannelConfig,
): () => Promise<RailProbe> {
  let isFound = false;
  const ours = bytesToHex(scheme.channelId(sample));
  const addresses = [SETTLEMENT, DEPOSIT_COLLECTOR];
  const calls = [
    ...addresses.map((address) => ({ method: 'eth_getCode', params: [address, 'latest'] })),
    { method: 'eth_call', params: [{ to: SETTLEMENT, data: channelIdCalldata(sample) }, 'latest'] },
  ];

  /** What one provider does not find; null when it finds all. Throws for an answer that cannot be read. */
  function faultIn(outcomes: readonly RpcOutcome[]): string | null {
    const missing = addresses.find((_, at) => readOutcome(outcomes[at], data, 'code') === '0x');
    if (missing) return `no contract stands at ${missing}`;
    const id = readOutcome(outcomes[addresses.length], data, 'channel id');
    return id === ours ? null : `the contract at ${SETTLEMENT} computes other channel ids`;
  }

  async function fault(): Promise<string | null> {
    const answers = await chain.each(calls, { rank: 'collect' });
    const faults = answers.flatMap((outcomes) => {
      try {
        return [faultIn(outcomes)];
      } catch {
        return [];
      }
    });
    const missing = faults.filter((one) => one !== null);
    if (faults.length === 0) return UNREAD;
    return missing.length < faults.length && missing.length < 2 ? null : (missing[0] ?? null);
  }

  return async () => {
    if (isFound) return { ok: true };
    const found = await fault().catch(() => UNREAD);
    isFound = found === null;
    return found === null ? { ok: true } : { ok: false, detail: found };
  };
}

// Compares the ledger with the contract, each hour. What one provider says to be missing counts once another says it.
// 1. A claim's transaction records what its operation says, and its sweep pays the receiver what the contract says.
// 2. The contract has recorded what the ledger says was claimed. Unclaimed charges are no difference.

const PAGE = 500;
/** Hex digits of one word, with its prefix. */
const ONE_WORD = 66;
const [CLAIM, CHANNEL] = ['claim:', 'channel:'];

interface ChannelBooksOptions {
  readonly chain: ChainClient;
  readonly store: Pick<ChannelStore, 'get' | 'listClaimed' | 'listDoneClaims' | 'operation'>;
  readonly network: string;
  /** 20 bytes each. */
  readonly receiver: Uint8Array;
  readonly token: Uint8Array;
}

export function createChannelBooks(options: ChannelBooksOptions): Required<Pick<RailBooks, 'compareRest'>> {
  const { store, network } = options;
  const verdictsOf = createComparison(options);
  /** Claimed beyond all charges and reported already, by channel. */
  const reported = new Map<string, bigint>();

  function isReported(name: string, verdict: BookVerdict): boolean {
    if (verdict.kind !== 'surplus') return false;
    if (verdict.amount <= (reported.get(name) ?? 0n)) return true;
    reported.set(name, verdict.amount);
    return false;
  }

  async function compareChannels(verdicts: Map<string, BookVerdict>, again: ReadonlySet<string>, head: number) {
    // A channel of which nothing is claimed any more lacks nothing.
    for (const id of idsIn(again, CHANNEL)) verdicts.set(`${CHANNEL}${id}`, { kind: 'shown' });
    for (let after: Uint8Array | undefined; ; ) {
      const page = await store.listClaimed(network, PAGE, after);
      const found = await verdictsOf(page, head);
      for (const [at, channel] of page.entries()) {
        const [name, verdict] = [`${CHANNEL}${bytesToHex(channel.id)}`, found[at]];
        verdicts.delete(name);
        if (!verdict || isReported(name, verdict)) continue;
        if (verdict.kind !== 'shown' || again.has(name)) verdicts.set(name, verdict);
      }
      after = page.at(-1)?.id;
      if (page.length < PAGE) return;
    }
  }

  return {
    async compareRest(span, again, head) {
      const verdicts = new Map<string, BookVerdict>();
      await compareClaims(verdicts, span, again, options);
      await compareChannels(verdicts, again, head);
      return verdicts;
    },
  };
}

const idsIn = (names: ReadonlySet<string>, kind: string): string[] =>
  [...names].flatMap((name) => (name.startsWith(kind) ? [name.slice(kind.length)] : []));

/** As two providers say. Null for a channel that cannot be read, or only as it was before the ledger's own state. */
function createComparison({ chain }: ChannelBooksOptions) {
  const reader = createChannelReader(forBooks(chain));

  return async (channels: readonly Channel[], head: number): Promise<(BookVerdict | null)[]> => {
    const ids = channels.map(({ id }) => id);
    const states = await reader.read(ids, { rank: 'collect', turn: 1 }).catch(() => []);
    return channels.map((channel, at) => {
      const state = states[at];
      const isOlder = !state || state.block < Math.min(channel.state.block, head);
      return isOlder ? null : verdictOf(channel, state.totalClaimed);
    });
  };
}

/** Claims that ended in the span, and earlier open ones. One that the ledger no longer has lacks nothing. */
async function compareClaims(
  verdicts: Map<string, BookVerdict>,
  { from, to }: { readonly from: number; readonly to: number },
  again: ReadonlySet<string>,
  options: ChannelBooksOptions,
): Promise<void> {
  const { store, network } = options;
  const chain = forBooks(options.chain);
  const claims = new Map((await store.listDoneClaims(network, from, to)).map((claim) => [claim.id, claim]));
  for (const id of idsIn(again, CLAIM)) {
    const claim = await store.operation(id);
    if (claim) claims.set(id, claim);
    else verdicts.set(`${CLAIM}${id}`, { kind: 'shown' });
  }
  const noted = [...claims.values()].flatMap(({ transaction }) => transaction ?? []);
  const receiptOf = await readReceipts(chain, noted);
  for (const { id, amount, transaction } of claims.values()) {
    let verdict = await compareClaim(amount, transaction ? receiptOf(transaction) : null, options);
    if (verdict.kind === 'missing' && transaction)
      verdict = await compareClaim(amount, (await readReceipts(chain, [transaction], 0))(transaction), options);
    verdicts.set(`${CLAIM}${id}`, verdict);
  }
}

/** What a transaction records for channels of this ledger. */
async function recordedIn(receipt: TransactionReceipt, { store, network }: ChannelBooksOptions): Promise<bigint> {
  let recorded = 0n;
  for (const event of channelEvents(receipt))
    if (event.kind === 'Claimed' && (await store.get(event.channelId))?.network === network) recorded += event.amount;
  return recorded;
}

async function compareClaim(amount: bigint, receipt: ReceiptRead, options: ChannelBooksOptions): Promise<BookVerdict> {
  if (receipt === 'unread' || receipt === null) return { kind: 'unread', detail: 'its receipt cannot be read' };
  const lacks = amount - (await recordedIn(receipt, options));
  if (lacks > 0n) return { kind: 'missing', amount: lacks, detail: 'its transaction records less than was claimed' };
  const unpaid = unpaidIn(receipt, options);
  if (unpaid > 0n) return { kind: 'missing', amount: unpaid, detail: 'its sweep paid less than it says' };
  return { kind: 'shown' };
}

function verdictOf({ charged, state: { totalClaimed } }: Channel, recorded: bigint): BookVerdict {
  const lacks = totalClaimed - recorded;
  if (lacks > 0n) return { kind: 'missing', amount: lacks, detail: 'the contract has recorded less than was claimed' };
  if (recorded <= charged) return { kind: 'shown' };
  return { kind: 'surplus', amount: recorded - charged, detail: 'the contract has recorded more than was charged' };
}

/** What the sweeps of a transaction say they paid to the receiver, less what the token shows. */
function unpaidIn(
  receipt: TransactionReceipt,
  { receiver, token }: Pick<ChannelBooksOptions, 'receiver' | 'token'>,
): bigint {
  const isOurs = (one: Uint8Array, other: Uint8Array) => Buffer.compare(one, other) === 0;
  const said = channelEvents(receipt).flatMap((event) =>
    event.kind === 'Settled' && isOurs(event.receiver, receiver) && isOurs(event.token, token) ? [event.amount] : [],
  );
  const topics = [TRANSFER, topicOf(SETTLEMENT_BYTES), topicOf(receiver)].join();
  const paid = receipt.logs.flatMap((log) =>
    log.address.toLowerCase() === bytesToHex(token) && log.topics.join() === topics && log.data.length === ONE_WORD
      ? [BigInt(log.data)]
      : [],
  );
  return sumOf(said) - sumOf(paid);
}

const sumOf = (amounts: readonly bigint[]): bigint => amounts.reduce((sum, one) => sum + one, 0n);

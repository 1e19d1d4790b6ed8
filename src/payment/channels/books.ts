import type { ChainClient } from '../../chain/rpc/client.ts';
import { bytesToHex } from '../../lib/hex.ts';
import type { Channel, ChannelStore } from '../../store/ports/channels.ts';
import type { BookVerdict, RailBooks } from '../settler.ts';
import { forBooks, type ReceiptRead, readReceipts } from '../usdc/books.ts';
import type { Receipt } from '../usdc/evidence.ts';
import { TRANSFER, topicOf } from '../usdc/token.ts';
import { channelEvents } from './calldata.ts';
import { createChannelReader } from './channel.ts';
import { SETTLEMENT_BYTES } from './scheme.ts';

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
    for (const name of again) if (name.startsWith(CHANNEL)) verdicts.set(name, { kind: 'shown' });
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
      if (page.length < PAGE || !after) return;
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
  const claims = await store.listDoneClaims(network, from, to);
  for (const name of [...again].filter((one) => one.startsWith(CLAIM))) {
    const claim = await store.operation(name.slice(CLAIM.length));
    if (!claim) verdicts.set(name, { kind: 'shown' });
    else if (!claims.some(({ id }) => id === claim.id)) claims.push(claim);
  }
  const receiptOf = await readReceipts(
    chain,
    claims.flatMap(({ transaction }) => transaction ?? []),
  );
  for (const { id, amount, transaction } of claims) {
    let verdict = await compareClaim(amount, transaction ? receiptOf(transaction) : 'none', options);
    if (verdict.kind === 'missing' && transaction)
      verdict = await compareClaim(amount, (await readReceipts(chain, [transaction], 0))(transaction), options);
    verdicts.set(`${CLAIM}${id}`, verdict);
  }
}

/** What a transaction records for channels of this ledger. */
async function recordedIn(receipt: Receipt, { store, network }: ChannelBooksOptions): Promise<bigint> {
  let recorded = 0n;
  for (const event of channelEvents(receipt))
    if (event.kind === 'Claimed' && (await store.get(event.channelId))?.network === network) recorded += event.amount;
  return recorded;
}

async function compareClaim(amount: bigint, receipt: ReceiptRead, options: ChannelBooksOptions): Promise<BookVerdict> {
  if (receipt === 'unread' || receipt === 'none') return { kind: 'unread', detail: 'its receipt cannot be read' };
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
function unpaidIn(receipt: Receipt, { receiver, token }: Pick<ChannelBooksOptions, 'receiver' | 'token'>): bigint {
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

import type { ChainClient } from '../../../chain/rpc/client.ts';
import { bytesToHex } from '../../../lib/hex.ts';
import type { Channel, ChannelOperation, ChannelStore } from '../../../store/ports/channels.ts';
import { forBooks, type ReceiptRead, readReceipts } from '../../evm/books.ts';
import type { Receipt } from '../../evm/evidence.ts';
import { TRANSFER } from '../../evm/token.ts';
import type { BookVerdict, RailBooks } from '../../settler.ts';
import { channelEvents } from './channel-events.ts';
import { createChannelReader } from './channel-reader.ts';
import { SETTLEMENT_BYTES } from './scheme.ts';

/** Channels that are listed and read at a time. */
const PAGE = 500;
const [CLAIM, CHANNEL] = ['claim:', 'channel:'];

interface ChannelBooksOptions {
  readonly chain: ChainClient;
  readonly store: Pick<ChannelStore, 'get' | 'listClaimed' | 'listDoneClaims' | 'operation'>;
  readonly network: string;
  /** 20 bytes each. */
  readonly receiver: Uint8Array;
  readonly token: Uint8Array;
}

/**
 * Compares channels and claims with the contract. Unclaimed charges are no difference: the contract does not know them.
 * 1. What the ledger says was claimed from a channel, the contract has recorded. A state of a block before the ledger's own is not compared.
 * 2. A claim's transaction records what its operation says, and a sweep in it pays the receiver what the contract says it paid.
 */
export function createChannelBooks(options: ChannelBooksOptions): Required<Pick<RailBooks, 'compareRest'>> {
  const { store, network } = options;
  const chain = forBooks(options.chain);
  const reader = createChannelReader(chain);
  /** What was claimed beyond all charges and is reported already, by channel. */
  const reported = new Map<string, bigint>();

  async function compareChannels(verdicts: Map<string, BookVerdict>, again: ReadonlySet<string>, head: number) {
    for (let after: Uint8Array | undefined; ; ) {
      const page = await store.listClaimed(network, PAGE, after);
      const ids = page.map(({ id }) => id);
      const states = await reader.read(ids, { rank: 'collect' }).catch(() => []);
      for (const [at, channel] of page.entries()) {
        const [name, state] = [`${CHANNEL}${bytesToHex(channel.id)}`, states[at]];
        if (!state || state.block < Math.min(channel.state.block, head)) continue;
        const verdict = verdictOf(channel, state.totalClaimed);
        if (verdict.kind === 'missing' || again.has(name)) verdicts.set(name, verdict);
        else if (verdict.kind === 'surplus' && verdict.amount > (reported.get(name) ?? 0n)) {
          verdicts.set(name, verdict);
          reported.set(name, verdict.amount);
        }
      }
      after = ids.at(-1);
      if (page.length < PAGE || !after) return;
    }
  }

  return {
    async compareRest({ from, to }, again, head) {
      const verdicts = new Map<string, BookVerdict>();
      const claims = await store.listDoneClaims(network, from, to);
      for (const name of [...again].filter((one) => one.startsWith(CLAIM))) {
        const claim = await store.operation(name.slice(CLAIM.length));
        if (claim && !claims.some(({ id }) => id === claim.id)) claims.push(claim);
      }
      const receiptOf = await readReceipts(
        chain,
        claims.flatMap(({ transaction }) => transaction ?? []),
      );
      for (const claim of claims)
        verdicts.set(
          `${CLAIM}${claim.id}`,
          await compareClaim(claim, claim.transaction ? receiptOf(claim.transaction) : 'none', options),
        );
      await compareChannels(verdicts, again, head);
      return verdicts;
    },
  };
}

/** What a transaction records for channels of this ledger. */
async function recordedIn(receipt: Receipt, { store, network }: ChannelBooksOptions): Promise<bigint> {
  let recorded = 0n;
  for (const event of channelEvents(receipt))
    if (event.kind === 'Claimed' && (await store.get(event.channelId))?.network === network) recorded += event.amount;
  return recorded;
}

async function compareClaim(
  { amount }: ChannelOperation,
  receipt: ReceiptRead,
  options: ChannelBooksOptions,
): Promise<BookVerdict> {
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
    log.address.toLowerCase() === bytesToHex(token) && log.topics.join() === topics ? [BigInt(log.data)] : [],
  );
  return sumOf(said) - sumOf(paid);
}

const topicOf = (address: Uint8Array): string => `0x${Buffer.from(address).toString('hex').padStart(64, '0')}`;
const sumOf = (amounts: readonly bigint[]): bigint => amounts.reduce((sum, one) => sum + one, 0n);

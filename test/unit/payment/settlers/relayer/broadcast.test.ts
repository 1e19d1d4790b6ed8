import { randomBytes } from 'node:crypto';
import { afterEach, describe, expect, test } from 'vitest';
import { chainBusy } from '../../../../../src/chain/rpc/allowed.ts';
import { type ChainClient, createChainClient } from '../../../../../src/chain/rpc/client.ts';
import { bytesToHex } from '../../../../../src/lib/hex.ts';
import type { Outcome } from '../../../../../src/payment/settler.ts';
import { createBroadcast } from '../../../../../src/payment/settlers/relayer/broadcast.ts';
import { createGasModel } from '../../../../../src/payment/settlers/relayer/gas-model.ts';
import { type Job, newest, type Slot } from '../../../../../src/payment/settlers/relayer/job.ts';
import { createCollectMined } from '../../../../../src/payment/settlers/relayer/mined.ts';
import { createNonces } from '../../../../../src/payment/settlers/relayer/nonces.ts';
import { createSlots } from '../../../../../src/payment/settlers/relayer/slots.ts';
import { createWallet } from '../../../../../src/payment/settlers/relayer/wallet.ts';
import { RpcFault, type RpcServer, startRpcServer } from '../../../../support/chain/rpc-server.ts';
import { createManualClock } from '../../../../support/manual-clock.ts';
import { USDC } from '../../../../support/usdc/payments.ts';
import { paidReceipt, randomJob } from '../../../../support/usdc/token-node.ts';

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

const NOW = 1_800_000_000_000;
type Price = { maxFeePerGas: bigint; maxPriorityFeePerGas: bigint };
const OFFER: Price = { maxFeePerGas: 100n, maxPriorityFeePerGas: 4n };
const above = ({ maxFeePerGas, maxPriorityFeePerGas }: Price): Price => ({
  ...{ maxFeePerGas: maxFeePerGas * 2n, maxPriorityFeePerGas: maxPriorityFeePerGas * 2n },
});

/** Real slots, nonces, receipts and chain client over nodes that the test makes answer. */
async function bench({ providers = 1, busy = 0 } = {}) {
  const nodes: RpcServer[] = [];
  for (let at = 0; at < providers; at++)
    nodes.push(await startRpcServer({ eth_sendRawTransaction: () => '0x1', eth_getTransactionReceipt: () => null }));
  const [node] = nodes as [RpcServer];
  const open = createChainClient({ rpcUrls: nodes.map(({ url }) => url), chainId: 5042, timeoutMs: 1000 });
  closing.push(() => open.close(), ...nodes.map((server) => () => server.stop()));
  // The client itself waits for seconds before it says that its providers bear no more; here it says so at once.
  let refusals = busy;
  const chain: ChainClient = {
    ...open,
    batch: async (...given) => {
      if (refusals-- > 0) throw chainBusy();
      return open.batch(...given);
    },
  };
  const clock = createManualClock(NOW);
  const nonces = createNonces();
  nonces.learn(3);
  const stopping = new AbortController();
  const wallet = createWallet(bytesToHex(randomBytes(32)), 5042);
  const fees = { offer: () => OFFER, above };
  const slots = createSlots({ usdc: USDC, wallet, nonces, fees, gas: createGasModel(60) });
  const self = {
    ...{ nodes, node, slots, nonces, stopping },
    events: [] as string[],
    noted: [] as { id: string; transaction: Uint8Array }[][],
    reopened: [] as Job[],
    mined: [] as Job[],
    pauses: [] as number[],
    /** Rows that wait no longer, and what the ledger throws. */
    gone: new Set<string>(),
    fault: null as Error | null,
    send: (...fresh: Slot[]) => broadcast.send(fresh),
    everywhere: (...late: Slot[]) => broadcast.everywhere(late),
    note: (...fresh: Slot[]) => broadcast.note(fresh),
    sent: () =>
      nodes.map((server) =>
        server.bodies
          .flat()
          .filter(isSending)
          .map(({ params: [raw] }) => raw),
      ),
    open: (...jobs: Job[]) => slots.open(jobs),
  };
  const judge = {
    mined: ({ jobs }: { jobs: readonly Job[] }) => self.mined.push(...jobs),
    reopen: async (jobs: readonly Job[]) => void self.reopened.push(...jobs),
  };
  const common = { chain, slots, nonces, judge, signal: stopping.signal, log: { warn: () => {} } };
  const broadcast = createBroadcast({
    ...{ ...common, clock, collect: createCollectMined({ ...common, onMined: () => {} }) },
    noteBroadcast: async (entries) => {
      self.noted.push(entries);
      self.events.push(`noted while ${node.count('eth_sendRawTransaction')} were sent`);
      if (self.fault) throw self.fault;
      return new Set(entries.map(({ id }) => id).filter((id) => !self.gone.has(id)));
    },
    finish: (job, outcome: Outcome) => job.end(outcome),
    pause: async (ms) => void self.pauses.push(ms),
  });
  return self;
}

function isSending(call: unknown): call is { params: [string] } {
  return (call as { method: string }).method === 'eth_sendRawTransaction';
}
const refusing = (node: RpcServer, message: string, only: (raw: unknown) => boolean = () => true) => {
  node.methods.eth_sendRawTransaction = ([raw]) => {
    if (only(raw)) throw new RpcFault(-32000, message);
    return '0x1';
  };
};

describe('a transaction', () => {
  test('is on disk for each of its payments before it is on its way', async () => {
    const { send, open, noted, events, sent } = await bench();
    const jobs = [randomJob(), randomJob()];
    const slot = open(...jobs);
    await send(slot);
    const transaction = Buffer.from(newest(slot).hash.slice(2), 'hex');
    expect(noted).toEqual([jobs.map(({ intent: { id } }) => ({ id, transaction }))]);
    expect(events).toEqual(['noted while 0 were sent']);
    expect(sent()).toEqual([[newest(slot).raw]]);
  });

  test('that was sent is in other hands from then on: its time and its nonce are kept', async () => {
    const { send, open, slots, reopened, pauses, nonces } = await bench();
    const [job, other] = [randomJob(), randomJob()];
    const [slot, second] = [open(job), open(other)];
    await send(slot, second);
    expect([slot.atMs, second.atMs]).toEqual([NOW, NOW]);
    expect([[...job.nonces], [...other.nonces]]).toEqual([[3], [4]]);
    expect([slots.has(slot), slots.has(second), nonces.known()]).toEqual([true, true, true]);
    expect([reopened, pauses, job.outcomes]).toEqual([[], [], []]);
  });

  test('that cannot be written down is not sent, and its nonce is free again', async () => {
    const bed = await bench();
    bed.fault = new Error('the disk is away');
    const [slot, other] = [bed.open(randomJob()), bed.open(randomJob())];
    await expect(bed.send(slot, other)).rejects.toThrow('the disk is away');
    expect([bed.sent(), bed.slots.size()]).toEqual([[[]], 0]);
    expect(bed.open(randomJob()).nonce).toBe(3);
  });

  test('after the service was told to stop is not sent, and stays in flight', async () => {
    const { send, open, stopping, sent, slots } = await bench();
    stopping.abort(new Error('stopping'));
    const slot = open(randomJob());
    await send(slot);
    expect([sent(), slots.has(slot)]).toEqual([[[]], true]);
  });
});

describe('a payment whose row waits no longer', () => {
  test('is left out: the others are signed and written down again without it', async () => {
    const bed = await bench();
    const [kept, gone] = [randomJob(), randomJob()];
    bed.gone.add(gone.intent.id);
    const slot = bed.open(kept, gone);
    const first = newest(slot).hash;
    await bed.send(slot);
    expect(gone.outcomes).toEqual([{ kind: 'unknown' }]);
    expect([kept.outcomes, newest(slot).jobs, slot.versions.length]).toEqual([[], [kept], 1]);
    expect(newest(slot).hash).not.toBe(first);
    const again = { id: kept.intent.id, transaction: Buffer.from(newest(slot).hash.slice(2), 'hex') };
    expect([bed.noted.length, bed.noted[1]]).toEqual([2, [again]]);
    expect([bed.sent(), [...gone.nonces]]).toEqual([[[newest(slot).raw]], []]);
  });

  test('leaves nothing to send where it was alone, and frees the nonce; other transactions go', async () => {
    const bed = await bench();
    const [gone, kept] = [randomJob(), randomJob()];
    bed.gone.add(gone.intent.id);
    const [empty, full] = [bed.open(gone), bed.open(kept)];
    await bed.send(empty, full);
    expect(gone.outcomes).toEqual([{ kind: 'unknown' }]);
    expect([bed.slots.has(empty), bed.slots.has(full)]).toEqual([false, true]);
    expect(bed.sent()).toEqual([[newest(full).raw]]);
    expect(bed.noted.map((entries) => entries.length)).toEqual([2, 1]);
  });

  test('is told from those that wait when only the note is asked for', async () => {
    const bed = await bench();
    const [gone, kept] = [randomJob(), randomJob()];
    bed.gone.add(gone.intent.id);
    const [empty, full] = [bed.open(gone), bed.open(kept)];
    expect(await bed.note(empty, full)).toEqual([full]);
    expect(bed.sent()).toEqual([[]]);
  });
});

describe('a transaction that no node answers for', () => {
  test('may have arrived: it stays in flight', async () => {
    const { send, open, node, slots, reopened, nonces } = await bench();
    node.fault = '500';
    const slot = open(randomJob());
    await send(slot);
    expect([slots.has(slot), reopened, nonces.known()]).toEqual([true, [], true]);
  });

  test('is sent once, because another sending would not tell more', async () => {
    const { send, open, node, pauses } = await bench();
    node.fault = (calls) => (calls.some(isSending) ? '500' : null);
    await send(open(randomJob()));
    expect([node.count('eth_sendRawTransaction'), pauses]).toEqual([1, []]);
  });

  test.each(['already known', 'transaction already imported', 'nonce Already Exists'])(
    'is in flight where a node has it already (%s)',
    async (message) => {
      const { send, open, node, slots, reopened } = await bench();
      refusing(node, message);
      const slot = open(randomJob());
      await send(slot);
      expect([slots.has(slot), reopened]).toEqual([true, []]);
    },
  );
});

describe('while the providers bear no more', () => {
  test('a transaction waits a moment and is sent then: they have taken nothing', async () => {
    const { send, open, sent, pauses, slots } = await bench({ busy: 4 });
    const slot = open(randomJob());
    await send(slot);
    expect([sent(), pauses]).toEqual([[[newest(slot).raw]], [100, 100, 100, 100]]);
    expect(slots.has(slot)).toBe(true);
  });

  test('it is tried five times, and stays in flight until it is late', async () => {
    const { send, open, sent, pauses, slots, reopened } = await bench({ busy: 5 });
    const slot = open(randomJob());
    await send(slot);
    expect([sent(), pauses.length, slots.has(slot), reopened]).toEqual([[[]], 4, true, []]);
  });
});

describe('a transaction that a node refuses', () => {
  test('frees its nonce, asks the chain for the nonce again and goes back to the judge; the others stay', async () => {
    const { send, open, node, slots, nonces, reopened, pauses } = await bench();
    const [good, bad] = [randomJob(), randomJob()];
    const [first, second] = [open(good), open(bad)];
    refusing(node, 'nonce too low', (raw) => raw === newest(second).raw);
    await send(first, second);
    expect([slots.has(first), slots.has(second), nonces.known()]).toEqual([true, false, false]);
    expect([reopened, pauses, bad.maxGroup]).toEqual([[bad], [500], Number.MAX_SAFE_INTEGER]);
  });

  test('may be what used the nonce: with its receipt its payments have ended, and nothing is opened again', async () => {
    const { send, open, node, slots, reopened, mined } = await bench();
    const job = randomJob();
    const slot = open(job);
    refusing(node, 'nonce too low');
    const receipt = paidReceipt([job.intent.authorization], { transactionHash: newest(slot).hash });
    node.methods.eth_getTransactionReceipt = ([hash]) => (hash === newest(slot).hash ? receipt : null);
    await send(slot);
    expect([mined, reopened, slots.has(slot)]).toEqual([[job], [], false]);
  });

  test('is given back all the same where its receipt cannot be read', async () => {
    const { send, open, node, slots, reopened } = await bench();
    const job = randomJob();
    const slot = open(job);
    node.fault = (calls) => (calls.some(({ method }) => method === 'eth_getTransactionReceipt') ? '500' : null);
    refusing(node, 'nonce too low');
    await send(slot);
    expect([reopened, slots.has(slot)]).toEqual([[job], false]);
  });

  test('as too cheap is outbid under its nonce', async () => {
    const { send, open, node, slots, nonces } = await bench();
    const slot = open(randomJob());
    refusing(node, 'replacement transaction underpriced');
    await send(slot);
    nonces.learn(3);
    expect(newest(slots.open([randomJob()])).price).toEqual(above(OFFER));
  });

  test('for anything else is not outbid', async () => {
    const { send, open, node, slots, nonces } = await bench();
    const slot = open(randomJob());
    refusing(node, 'nonce too low');
    await send(slot);
    nonces.learn(3);
    expect(newest(slots.open([randomJob()])).price).toEqual(OFFER);
  });

  test.each([
    'insufficient funds for gas * price + value',
    'Insufficient balance',
    'oversized data',
    'exceeds block gas limit',
    'transaction too large',
    'gas too big',
    'fee too high',
  ])('as too much (%s) is tried again in halves', async (message) => {
    const { send, open, node, reopened } = await bench();
    const jobs = Array.from({ length: 5 }, () => randomJob());
    refusing(node, message);
    await send(open(...jobs));
    expect([reopened, jobs.map(({ maxGroup }) => maxGroup)]).toEqual([jobs, [3, 3, 3, 3, 3]]);
  });
});

describe('a transaction that is late', () => {
  test('is handed to every provider, and counts as sent then', async () => {
    const { everywhere, open, nodes, sent } = await bench({ providers: 2 });
    const arrived = nodes.map(
      (node) =>
        new Promise<void>((resolve) => {
          node.methods.eth_sendRawTransaction = () => {
            resolve();
            return '0x1';
          };
        }),
    );
    const job = randomJob();
    const slot = open(job);
    everywhere(slot);
    expect([slot.atMs, [...job.nonces]]).toEqual([NOW, [3]]);
    await Promise.all(arrived);
    expect(sent()).toEqual([[newest(slot).raw], [newest(slot).raw]]);
  });
});

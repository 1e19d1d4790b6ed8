import { afterEach, describe, expect, test } from 'vitest';
import { chainBusy } from '../../../../../src/chain/rpc/failover.ts';
import { createEffects } from '../../../../../src/payment/relayer/requests.ts';
import { newest } from '../../../../../src/payment/relayer/transactions.ts';
import { createChainCheck } from '../../../../../src/payment/usdc/checks.ts';
import { createEvidence } from '../../../../../src/payment/usdc/evidence.ts';
import { openClient } from '../../../../support/chain/client.ts';
import { RpcFault, type RpcServer, startRpcServer } from '../../../../support/chain/rpc-server.ts';
import { createManualClock } from '../../../../support/manual-clock.ts';
import { USDC } from '../../../../support/usdc/payments.ts';
import { openRelayerBench } from '../../../../support/usdc/relayer-bench.ts';
import { paidReceipt, randomJob } from '../../../../support/usdc/token-node.ts';

// How transactions are handed to the chain: noted, sent, refused, sent again, by the machine with its real effects.

const NOW = 1_800_000_000_000;
const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

/** `busy`: the chain client itself waits for seconds before it says that its providers bear no more; here it says so at once, so often. */
async function bench({ busy = 0 } = {}) {
  let refusals = busy;
  const opened = await openRelayerBench({
    spoil: (chain) => ({
      ...chain,
      batch: async (calls, options) => {
        if (calls.some(isSending) && refusals-- > 0) throw chainBusy();
        return chain.batch(calls, options);
      },
    }),
  });
  closing.push(opened.close);
  const { server } = opened.node;
  const sent = () =>
    server.bodies
      .flat()
      .filter(isSending)
      .map(({ params: [raw] }) => raw);
  return { ...opened, opened, server, sent };
}

function isSending(call: unknown): call is { params: [string] } {
  return (call as { method: string }).method === 'eth_sendRawTransaction';
}
const refusing = (server: RpcServer, message: string, only: (nth: number) => boolean = () => true) => {
  let nth = 0;
  server.methods.eth_sendRawTransaction = () => {
    if (only(nth++)) throw new RpcFault(-32000, message);
    return '0x1';
  };
};
const hashOf = (hash: string) => Buffer.from(hash.slice(2), 'hex');

describe('a transaction', () => {
  test('is on disk for each of its payments before it is on its way', async () => {
    const { launch, noted, effects, sent } = await bench();
    const jobs = [randomJob(), randomJob()];
    const [flight] = await launch(jobs);
    if (!flight) throw new Error('nothing was sent');
    const transaction = hashOf(newest(flight).hash);
    expect(noted).toEqual([jobs.map(({ intent: { id } }) => ({ id, transaction }))]);
    const kinds = effects.map(({ kind }) => kind);
    expect(kinds.filter((kind) => kind === 'note' || kind === 'send')).toEqual(['note', 'send']);
    expect(sent()).toEqual([newest(flight).raw]);
  });

  test('that was sent may be in a third party’s hands from then on, so its time and its nonce are kept', async () => {
    const { launch, state, outcomes, effects } = await bench();
    const [job, other] = [randomJob(), randomJob()];
    const [flight, second] = await launch([job], [other]);
    expect([flight?.sentMs, second?.sentMs]).toEqual([NOW, NOW]);
    expect([[...job.nonces], [...other.nonces]]).toEqual([[3], [4]]);
    expect([state.flights.size(), state.nonces.known(), state.sender]).toEqual([2, true, 'idle']);
    expect([state.queue, outcomes(job), effects.filter(({ kind }) => kind === 'readPayers')]).toEqual([[], [], []]);
  });

  test('that cannot be written down is not sent, its nonce is free again, and its payments wait for half a second', async () => {
    const bed = await bench();
    bed.opened.fault = new Error('the disk is away');
    const jobs = [randomJob(), randomJob()];
    await bed.launch(...jobs.map((job) => [job]));
    expect([bed.sent(), bed.state.flights.size(), bed.state.queue]).toEqual([[], 0, jobs]);
    expect(bed.opened.waits).toMatchObject([{ ms: 60_000 }, { ms: 500, timer: { name: 'pause' } }]);
    expect(bed.state.flights.open([randomJob()], bed.prices).nonce).toBe(3);
  });

  test('is not sent after the service was asked to stop, and stays in flight', async () => {
    const { launch, stopping, sent, state } = await bench();
    stopping.abort(new Error('stopping'));
    await launch([randomJob()]);
    expect([sent(), state.flights.size()]).toEqual([[], 1]);
  });
});

describe('a payment whose row waits no longer', () => {
  test('is left out: the others are signed and written down again without it', async () => {
    const bed = await bench();
    const [kept, gone] = [randomJob(), randomJob()];
    bed.gone.add(gone.intent.id);
    const [flight] = await bed.launch([kept, gone]);
    if (!flight) throw new Error('nothing was sent');
    expect([bed.outcomes(gone), bed.outcomes(kept)]).toEqual([[{ kind: 'unknown' }], []]);
    expect([newest(flight).jobs, flight.transactions.length]).toEqual([[kept], 1]);
    expect(bed.noted[0]?.map(({ id }) => id)).toEqual([kept.intent.id, gone.intent.id]);
    expect(bed.noted[0]?.[0]?.transaction).not.toEqual(hashOf(newest(flight).hash));
    expect(bed.noted.slice(1)).toEqual([[{ id: kept.intent.id, transaction: hashOf(newest(flight).hash) }]]);
    expect([bed.sent(), [...gone.nonces]]).toEqual([[newest(flight).raw], []]);
  });

  test('leaves nothing to send where it was alone, and frees the nonce; other transactions are sent', async () => {
    const bed = await bench();
    const [gone, kept] = [randomJob(), randomJob()];
    bed.gone.add(gone.intent.id);
    const [empty, full] = await bed.launch([gone], [kept]);
    if (!empty || !full) throw new Error('nothing was sent');
    expect(bed.outcomes(gone)).toEqual([{ kind: 'unknown' }]);
    expect([bed.state.flights.has(empty), bed.state.flights.has(full)]).toEqual([false, true]);
    expect(bed.sent()).toEqual([newest(full).raw]);
    expect(bed.noted.map((entries) => entries.length)).toEqual([2, 1]);
  });
});

describe('a transaction whose sending gets no clear answer', () => {
  test('may have arrived, so it stays in flight and is not sent a second time, which would show no more', async () => {
    const { launch, server, state, sent, opened } = await bench();
    server.fault = (calls) => (calls.some(isSending) ? '500' : null);
    await launch([randomJob()]);
    expect([state.flights.size(), state.nonces.known(), state.queue]).toEqual([1, true, []]);
    expect([sent().length, opened.waits.map(({ timer }) => timer.name)]).toEqual([1, ['poll']]);
  });

  test.each(['already known', 'transaction already imported', 'nonce Already Exists'])(
    'is in flight where a node has it already (%s)',
    async (message) => {
      const { launch, server, state, opened } = await bench();
      refusing(server, message);
      await launch([randomJob()]);
      expect([state.flights.size(), opened.waits.map(({ timer }) => timer.name)]).toEqual([1, ['poll']]);
    },
  );
});

describe('while the providers refuse more requests,', () => {
  /** Moves on while the sending pauses; how often it did. */
  async function pauses({ clock, rest }: Awaited<ReturnType<typeof bench>>, most: number): Promise<number> {
    const resting = rest();
    let count = 0;
    for (let turn = 0; turn < 200 && count < most; turn++) {
      await new Promise((next) => setImmediate(next));
      if (!clock.pendingSleeps().includes(100)) continue;
      count++;
      await clock.advance(100);
    }
    await resting;
    return count;
  }

  test('a transaction waits a moment and is sent then, because no provider has accepted it', async () => {
    const bed = await bench({ busy: 4 });
    const launching = bed.launch([randomJob()]);
    expect(await pauses(bed, 4)).toBe(4);
    const [flight] = await launching;
    if (!flight) throw new Error('nothing was sent');
    expect([bed.sent(), bed.state.flights.has(flight)]).toEqual([[newest(flight).raw], true]);
  });

  test('a transaction is tried five times, and stays in flight until it is late', async () => {
    const bed = await bench({ busy: 5 });
    const launching = bed.launch([randomJob()]);
    expect(await pauses(bed, 4)).toBe(4);
    await launching;
    expect([bed.sent(), bed.state.flights.size(), bed.state.queue]).toEqual([[], 1, []]);
  });
});

describe('a transaction that a node refuses', () => {
  test('frees its nonce after half a second, asks the chain for the nonce again, and its payments are read once more; the others stay', async () => {
    const { launch, server, state, opened, release } = await bench();
    const [good, bad] = [randomJob(), randomJob()];
    refusing(server, 'nonce too low', (nth) => nth === 1);
    const [first, second] = await launch([good], [bad]);
    if (!first || !second) throw new Error('nothing was sent');
    expect([state.flights.has(second), state.nonces.known(), state.sender]).toEqual([true, false, 'round']);
    expect(opened.waits.map(({ ms, timer }) => [ms, timer.name])).toContainEqual([500, 'refused']);
    await release('refused');
    expect([state.flights.has(first), state.flights.has(second)]).toEqual([true, false]);
    expect([state.queue, bad.maxGroup]).toEqual([[bad], Number.MAX_SAFE_INTEGER]);
  });

  test('may itself have used the nonce: with its receipt its payments have ended, and none is queued again', async () => {
    const { launch, server, state, release, outcomes } = await bench();
    const job = randomJob();
    refusing(server, 'nonce too low');
    const [flight] = await launch([job]);
    const hash = flight?.transactions[0]?.hash ?? '';
    const receipt = paidReceipt([job.intent.authorization], { transactionHash: hash });
    server.methods.eth_getTransactionReceipt = ([asked]) => (asked === hash ? receipt : null);
    await release('refused');
    expect([outcomes(job).map(({ kind }) => kind), state.queue, state.flights.size()]).toEqual([['settled'], [], 0]);
  });

  test('frees its nonce also where its receipt cannot be read', async () => {
    const { launch, server, state, release } = await bench();
    const job = randomJob();
    server.fault = (calls) => (calls.some(({ method }) => method === 'eth_getTransactionReceipt') ? '500' : null);
    refusing(server, 'nonce too low');
    await launch([job]);
    await release('refused');
    expect([state.queue, state.flights.size()]).toEqual([[job], 0]);
  });

  test.each([
    ['replacement transaction underpriced', 'as too cheap is outbid under its nonce', (fee: bigint) => (fee * 5n) / 4n],
    ['nonce too low', 'for anything else is not outbid', (fee: bigint) => fee],
  ])('(%s) %s', async (message, _, next) => {
    const { launch, server, state, release, prices } = await bench();
    refusing(server, message);
    await launch([randomJob()]);
    await release('refused');
    state.nonces.learn(3);
    const { price } = newest(state.flights.open([randomJob()], prices));
    expect(price.maxFeePerGas).toEqual(next(prices.offer.maxFeePerGas));
  });

  test.each([
    'insufficient funds for gas * price + value',
    'Insufficient balance',
    'oversized data',
    'exceeds block gas limit',
    'transaction too large',
    'gas too big',
    'fee too high',
  ])('as too much (%s) is tried again in batches of half the size', async (message) => {
    const { launch, server, state, release } = await bench();
    const jobs = Array.from({ length: 5 }, () => randomJob());
    refusing(server, message);
    await launch(jobs);
    await release('refused');
    expect([state.queue, jobs.map(({ maxGroup }) => maxGroup)]).toEqual([jobs, [3, 3, 3, 3, 3]]);
  });
});

describe('a transaction that is late', () => {
  test('counts as sent again', async () => {
    const { launch, release, clock, server, opened } = await bench();
    const job = randomJob();
    const [flight] = await launch([job]);
    await clock.advance(3001);
    await release('poll');
    expect([flight?.sentMs, flight?.resends, [...job.nonces]]).toEqual([NOW + 3001, 1, [3]]);
    expect(opened.effects.filter(({ kind }) => kind === 'resendEverywhere')).toMatchObject([
      { raws: [flight?.transactions[0]?.raw] },
    ]);
    expect(server.count('eth_getTransactionCount')).toBe(1);
  });

  test('whose payment’s row waits no longer is not replaced: what was sent before keeps its nonce', async () => {
    const bed = await bench();
    const job = randomJob();
    const [flight] = await bed.launch([job]);
    if (!flight) throw new Error('nothing was sent');
    for (const gone of [false, true]) {
      if (gone) bed.gone.add(job.intent.id);
      await bed.clock.advance(3001);
      await bed.release('poll');
    }
    expect([bed.outcomes(job), flight.transactions.length]).toEqual([[{ kind: 'unknown' }], 1]);
    expect([bed.noted.map((entries) => entries.length), bed.state.flights.has(flight)]).toEqual([[1, 1, 0], true]);
  });

  test('is handed to every provider', async () => {
    const nodes = [await startRpcServer({}), await startRpcServer({})];
    const chain = openClient({ rpcUrls: nodes.map(({ url }) => url), chainId: 5042, timeoutMs: 30_000 });
    closing.push(() => chain.close(), ...nodes.map((node) => () => node.stop()));
    const arrived = nodes.map(
      (node) =>
        new Promise<unknown>((resolve) => {
          node.methods.eth_sendRawTransaction = ([raw]) => {
            resolve(raw);
            return '0x1';
          };
        }),
    );
    const effects = createEffects({
      chain,
      clock: createManualClock(NOW),
      usdc: USDC,
      relayer: USDC,
      signal: new AbortController().signal,
      check: createChainCheck(chain, USDC, () => USDC),
      evidence: createEvidence(chain, USDC),
      token: { check: async () => true },
      fees: { ready: async () => {}, refresh: async () => {} },
      noteBroadcast: async () => new Set<string>(),
    });
    effects.resendEverywhere(['0x02']);
    expect(await Promise.all(arrived)).toEqual(['0x02', '0x02']);
  });
});

import { afterEach, describe, expect, test } from 'vitest';
import { RpcFault } from '../../../../support/chain/rpc-server.ts';
import { openChannelSale, PRICE } from '../../../../support/channels/channel-sale.ts';
import { openLyingWorld } from '../../../../support/channels/lying-world.ts';

// One RPC provider that lies about channels. Providers, ledger, claims and watch are real; the contract is a stand-in
// behind each provider.

const { signal } = new AbortController();
const THREE = [0, 1, 2].map((place) => [0, 1, 2].map((at) => (at === place ? 'liar' : 'honest') as 'liar' | 'honest'));
const TWO: ('liar' | 'honest')[][] = [
  ['liar', 'honest'],
  ['honest', 'liar'],
];
/** What the payer has really paid in: two calls. */
const DEPOSIT = 2n * PRICE;
const LIE = 1_000_000n;

let world: Awaited<ReturnType<typeof openLyingWorld>>;
afterEach(() => world.close());

/**
 * A channel with a deposit of two calls, about which the liar says that it holds a million. The ledger does not know
 * it.
 */
function deposited() {
  const channel = world.bed.fund(DEPOSIT);
  world.lie.put(channel.id, { balance: LIE });
  return channel;
}

/** The same, known to the ledger and charged. */
async function charged(sum: bigint) {
  const channel = await world.bed.open(DEPOSIT);
  world.lie.put(channel.id, { balance: DEPOSIT });
  await world.bed.charge(channel, sum);
  return channel;
}

/** How many calls the channel buys. */
async function callsOf(channel: ReturnType<typeof deposited>): Promise<number> {
  const { ask, voucher } = await openChannelSale({ over: world });
  for (let calls = 0; ; calls++) {
    await world.bed.clock.advance(3000);
    const sold = await ask({ tag: `call ${calls}` }, voucher(BigInt(calls + 1) * PRICE, { of: channel }));
    if (!sold.startsWith('answer') || calls === 5) return calls;
  }
}

/** The ways in which the liar's block may differ from the chain's. */
const AHEAD = [0, 7200, 2 ** 52];
/** How an older release has noted what the liar said. */
const poison = (block: number) =>
  world.bed.sql(`UPDATE channels SET balance = ${LIE}, state_block = ${block}, confirmed_block = NULL`);

describe.each(THREE)('one liar of three, as %s, %s, %s', (...places) => {
  test.each(AHEAD)('sells no call beyond the deposit, %i blocks ahead', async (ahead) => {
    world = await openLyingWorld(places);
    world.lie.block += ahead;
    const channel = deposited();
    expect(await callsOf(channel)).toBe(2);
    expect((await world.bed.noted(channel.id)).state).toMatchObject({ balance: DEPOSIT, block: 1000 });
  });

  test.each(AHEAD)('whose word an older release has noted, %i blocks ahead, sells none either', async (ahead) => {
    world = await openLyingWorld(places);
    const channel = await world.bed.open(DEPOSIT);
    await poison(1000 + ahead);
    expect(await callsOf(channel)).toBe(2);
    expect(await world.bed.noted(channel.id)).toMatchObject({ isConfirmed: true, state: { block: 1000 } });
  });

  test('that hides a withdrawal does not keep the charges from being claimed in the same round', async () => {
    world = await openLyingWorld(places);
    const channel = await charged(DEPOSIT);
    await world.watch.run();
    world.bed.contract.put(channel.id, { withdrawAmount: DEPOSIT, withdrawAt: 1_800_000_000 });
    world.bed.contract.mineLogs([
      world.bed.contract.event('WithdrawInitiated', [channel.hex], [DEPOSIT, 1_800_001_200]),
    ]);
    world.lie.block = world.bed.contract.block;
    await world.chain.agreed.head();
    await world.watch.run();
    await world.claims.run(false, signal);
    expect(world.bed.contract.of(channel.id).totalClaimed).toBe(DEPOSIT);
    expect(world.isLiarApart()).toBe(true);
  });

  test('that invents a withdrawal is set apart, and nothing is claimed early', async () => {
    world = await openLyingWorld(places);
    const channel = await charged(PRICE);
    await world.watch.run();
    world.lie.put(channel.id, { withdrawAmount: DEPOSIT, withdrawAt: 1_800_000_000 });
    world.lie.mineLogs([world.lie.event('WithdrawInitiated', [channel.hex], [DEPOSIT, 1_800_001_200])]);
    world.bed.contract.block = world.lie.block;
    await world.chain.agreed.head();
    await world.watch.run();
    await world.claims.run(false, signal);
    expect([world.operations, world.isLiarApart()]).toEqual([[], true]);
  });

  test('that invents the log of a withdrawal alone is set apart, and nothing is claimed early', async () => {
    world = await openLyingWorld(places);
    const channel = await charged(PRICE);
    await world.watch.run();
    world.lie.mineLogs([world.lie.event('WithdrawInitiated', [channel.hex], [DEPOSIT, 1_800_001_200])]);
    world.bed.contract.block = world.lie.block;
    await world.chain.agreed.head();
    await world.watch.run();
    await world.watch.idle();
    await world.claims.run(false, signal);
    expect([world.operations, world.isLiarApart()]).toEqual([[], true]);
  });

  test('whose logs are of blocks that nobody asked for is not heard, and costs no read', async () => {
    world = await openLyingWorld(places);
    const channel = await charged(PRICE);
    await world.watch.run();
    const log = { ...world.lie.event('WithdrawInitiated', [channel.hex], [DEPOSIT, 1n]), transactionHash: channel.hex };
    const liar = world.servers[places.indexOf('liar')];
    if (liar) liar.methods.eth_getLogs = () => [{ ...log, blockNumber: '0x10000000000000' }];
    world.bed.contract.block += 1;
    world.lie.block += 1;
    await world.chain.agreed.head();
    const before = world.servers.map((server) => server.count('eth_call'));
    await world.watch.run();
    expect(world.servers.map((server) => server.count('eth_call'))).toEqual(before);
  });

  test('that refuses the simulation of a claim stops neither the claim nor the channel', async () => {
    world = await openLyingWorld(places);
    const channel = await charged(PRICE);
    world.lie.refusedRows.add(channel.hex);
    expect(await world.claims.run(true, signal)).toEqual({ claimed: PRICE, writtenOff: 0n, setAside: 0 });
    expect(await world.bed.noted(channel.id)).toMatchObject({ claimRefusedAt: null });
  });
});

describe.each(TWO)('one liar of two, as %s, %s', (...places) => {
  test('sells nothing: 503 and when to ask again, and nothing is charged', async () => {
    world = await openLyingWorld(places);
    const { sell, voucher } = await openChannelSale({ over: world });
    await expect(sell({}, voucher(PRICE, { of: deposited() }))).rejects.toMatchObject({
      status: 503,
      code: 'settlement_unavailable',
      retryAfterSeconds: 5,
    });
  });

  test('sells nothing on a state of an older release', async () => {
    world = await openLyingWorld(places);
    const channel = await world.bed.open(DEPOSIT);
    world.lie.put(channel.id, { balance: LIE });
    await poison(1000);
    const { sell, voucher } = await openChannelSale({ over: world });
    await expect(sell({}, voucher(PRICE, { of: channel }))).rejects.toMatchObject({
      status: 503,
      retryAfterSeconds: 5,
    });
    expect((await world.bed.noted(channel.id)).charged).toBe(0n);
  });

  test.each(['hidden', 'invented'])('causes one early claim by a %s withdrawal, whose gas is counted', async (what) => {
    world = await openLyingWorld(places);
    const { bed, lie } = world;
    const channel = await charged(PRICE);
    await world.watch.run();
    const teller = what === 'hidden' ? bed.contract : lie;
    teller.put(channel.id, { withdrawAmount: DEPOSIT, withdrawAt: 1_800_000_000 });
    teller.mineLogs([teller.event('WithdrawInitiated', [channel.hex], [DEPOSIT, 1_800_001_200])]);
    bed.contract.block = 1001;
    lie.block = 1001;
    await world.chain.agreed.head();
    for (let round = 0; round < 4; round++) {
      await expect(world.watch.run()).rejects.toMatchObject({ status: 503 });
      await world.claims.run(false, signal).catch(() => {});
      if (round === 1) await bed.charge(channel, DEPOSIT);
    }
    expect([world.operations.length, bed.contract.of(channel.id).totalClaimed]).toEqual([1, PRICE]);
    world.operations[0]?.readReceipt({ ...bed.contract.mined.at(-1)!, effectiveGasPrice: '0x4a817c800' });
    // 21,000 gas at 20 gwei.
    expect(world.alarms.costUsdc()).toBeCloseTo(0.00042, 8);
    // The liar comes round: two agree again.
    lie.put(channel.id, bed.contract.of(channel.id));
    await world.watch.run();
    expect(world.alarms.isDue(channel.id)).toBe(false);
  });
});

describe('an early claim', () => {
  /** The liar of two raises its alarm about a charged channel, or says what the chain says. */
  async function alarm(channel: Awaited<ReturnType<typeof charged>>, isRaised: boolean) {
    const { bed, lie } = world;
    lie.put(
      channel.id,
      isRaised ? { withdrawAmount: DEPOSIT, withdrawAt: 1_800_000_000 } : bed.contract.of(channel.id),
    );
    if (!isRaised) lie.put(channel.id, { withdrawAmount: 0n, withdrawAt: 0 });
    bed.contract.block = Math.max(bed.contract.block, lie.block) + 1;
    lie.block = bed.contract.block;
    await world.chain.agreed.head();
    // A twelfth of the delay: the watch reads the channel again.
    await bed.clock.advance(100_000);
    await world.watch.run().catch(() => {});
    await world.claims.run(false, signal).catch(() => {});
  }

  test('is made once an hour although the liar drops its alarm and raises it again', async () => {
    world = await openLyingWorld(['liar', 'honest']);
    const channel = await world.bed.open(3n * PRICE);
    world.lie.put(channel.id, { balance: 3n * PRICE });
    await world.bed.charge(channel, 2n * PRICE);
    await alarm(channel, false);
    await alarm(channel, true);
    expect(world.operations).toHaveLength(1);
    await alarm(channel, false);
    await world.bed.charge(channel, 3n * PRICE);
    for (const isRaised of [true, false, true, false]) await alarm(channel, isRaised);
    expect(world.operations).toHaveLength(1);
    await world.bed.clock.advance(3_600_000);
    await alarm(channel, true);
    expect([world.operations.length, world.bed.contract.of(channel.id).totalClaimed]).toEqual([2, 3n * PRICE]);
  });

  test.each(['failed', 'unknown'] as const)('that ended as %s is made again', async (kind) => {
    world = await openLyingWorld(['liar', 'honest']);
    const channel = await charged(DEPOSIT);
    await alarm(channel, false);
    world.end = kind === 'failed' ? { kind, reason: 'no event' } : { kind };
    await alarm(channel, true);
    expect([world.operations.length, world.bed.contract.of(channel.id).totalClaimed]).toEqual([1, 0n]);
    world.end = null;
    for (let round = 0; round < 3; round++) await alarm(channel, true);
    expect([world.operations.length, world.bed.contract.of(channel.id).totalClaimed]).toEqual([2, DEPOSIT]);
  });
});

describe('a withdrawal that one provider of two shows alone', () => {
  /** The payer asks for its money on the true chain. */
  function withdraw({ id, hex }: { id: Uint8Array; hex: `0x${string}` }): void {
    const { contract } = world.bed;
    contract.put(id, { withdrawAmount: DEPOSIT, withdrawAt: 1_800_000_000 });
    contract.mineLogs([contract.event('WithdrawInitiated', [hex], [DEPOSIT, 1_800_001_200])]);
  }
  /** Rounds with the heads that the providers have now. */
  async function rounds(count: number): Promise<void> {
    for (let round = 0; round < count; round++) {
      await world.chain.agreed.head().catch(() => {});
      await world.watch.run().catch(() => {});
      await world.claims.run(false, signal).catch(() => {});
    }
  }

  test.each(TWO)('is claimed early once while the other does not answer: %s, %s', async (...places) => {
    world = await openLyingWorld(places);
    const channel = await charged(PRICE);
    await rounds(1);
    world.servers[places.indexOf('liar')]!.fault = '500';
    await world.bed.clock.advance(11_000);
    expect(world.chain.agreed.lastHead()).toBeNull();
    withdraw(channel);
    await rounds(3);
    expect([world.operations.length, world.bed.contract.of(channel.id).totalClaimed]).toEqual([1, PRICE]);
  });

  test.each(TWO)('is claimed early once while the other stands still: %s, %s', async (...places) => {
    world = await openLyingWorld(places);
    const channel = await charged(PRICE);
    await rounds(1);
    world.bed.contract.block += 30;
    withdraw(channel);
    await rounds(3);
    expect(world.chain.agreed.lastHead()).toBe(1000);
    expect([world.operations.length, world.bed.contract.of(channel.id).totalClaimed]).toEqual([1, PRICE]);
  });

  test.each(AHEAD)('is claimed although the other hides it at a head %i blocks beyond', async (ahead) => {
    world = await openLyingWorld(['liar', 'honest']);
    const channel = await charged(PRICE);
    await rounds(1);
    withdraw(channel);
    world.lie.block += ahead + 1;
    await rounds(3);
    expect(world.bed.contract.of(channel.id).totalClaimed).toBe(PRICE);
  });
});

test.each(TWO)(
  'a lie about one channel of two providers leaves the others read and claimed: %s, %s',
  async (...places) => {
    world = await openLyingWorld(places);
    const others = await Promise.all([charged(DEPOSIT), charged(DEPOSIT)]);
    const about = await charged(DEPOSIT);
    world.lie.put(about.id, { balance: LIE });
    await world.bed.clock.advance(100_000);
    for (const { id } of others)
      for (const contract of [world.bed.contract, world.lie])
        contract.put(id, { withdrawAmount: 1n, withdrawAt: 1_800_000_000 });
    await world.chain.agreed.head();
    await expect(world.watch.run()).rejects.toMatchObject({ status: 503 });
    const noted = await Promise.all(others.map(({ id }) => world.bed.noted(id)));
    expect(noted.map(({ state, isConfirmed }) => [state.withdrawAmount, isConfirmed])).toEqual([
      [1n, true],
      [1n, true],
    ]);
    const { contract } = world.bed;
    const { operate } = contract;
    contract.operate = async (operation) => {
      const outcome = await operate(operation);
      for (const { id } of others) world.lie.put(id, contract.of(id));
      world.lie.block = contract.block;
      return outcome;
    };
    expect((await world.claims.run(true, signal)).claimed).toBe(2n * DEPOSIT);
    expect(world.bed.contract.of(about.id).totalClaimed).toBe(0n);
  },
);

describe('a provider that forges many logs', () => {
  async function forge(): Promise<void> {
    world = await openLyingWorld(['liar', 'honest', 'honest']);
    const channels = [];
    for (let more = 0; more < 5; more++) channels.push(await charged(PRICE));
    await world.watch.run();
    const { lie } = world;
    lie.mineLogs(channels.map(({ hex }) => lie.event('WithdrawInitiated', [hex], [DEPOSIT, 1_800_001_200])));
    world.bed.contract.block = lie.block;
    await world.chain.agreed.head();
  }

  test('costs three checks a round', async () => {
    await forge();
    await world.watch.run();
    await world.watch.idle();
    expect(world.bed.messages().filter((message) => message.includes('differ about the log'))).toHaveLength(3);
    expect(world.isLiarApart()).toBe(true);
  });

  test('ends no round later: the checks are not waited for', async () => {
    await forge();
    for (const server of world.servers)
      server.fault = (requests) =>
        requests.length > 1 && requests.some(({ method }) => method === 'eth_getLogs') ? 'hang' : null;
    await world.watch.run();
    expect(world.bed.messages()).toContain('warn: RPC providers differ about the log of a withdrawal');
  });
});

describe('the logs of withdrawals', () => {
  test('are read again where one of two refused the span, in halves', async () => {
    world = await openLyingWorld(['liar', 'honest']);
    await world.watch.run();
    world.bed.contract.block = 1100;
    world.lie.block = 1100;
    await world.chain.agreed.head();
    const honest = world.servers[1]!;
    const { eth_getLogs: logs } = honest.methods;
    honest.methods.eth_getLogs = (params) => {
      const [{ fromBlock, toBlock }] = params as [{ fromBlock: string; toBlock: string }];
      if (Number(toBlock) - Number(fromBlock) >= 60) throw new RpcFault(-32000, 'exceeds the most blocks of a range');
      return logs?.(params);
    };
    await world.watch.run();
    const asked = honest.bodies.flat() as { method: string; params: [{ fromBlock: string; toBlock: string }] }[];
    const ranges = asked.filter(({ method }) => method === 'eth_getLogs').map(({ params: [filter] }) => filter);
    expect(ranges.map(({ fromBlock, toBlock }) => [Number(fromBlock), Number(toBlock)])).toEqual([
      [1000, 1000],
      [1001, 1100],
      [1001, 1050],
      [1051, 1100],
    ]);
  });

  test('of old blocks that two pruned nodes lack set nobody apart', async () => {
    world = await openLyingWorld(['liar', 'honest', 'honest']);
    const channel = await charged(PRICE);
    await world.watch.run();
    world.lie.mineLogs([world.lie.event('WithdrawInitiated', [channel.hex], [DEPOSIT, 1_800_001_200])]);
    world.bed.contract.block = 2500;
    world.lie.block = 2500;
    await world.chain.agreed.head();
    await world.watch.run();
    await world.watch.idle();
    expect(world.isLiarApart()).toBe(false);
  });
});

test('a state that one lone provider gave of a block beyond the head is read again before a sale', async () => {
  world = await openLyingWorld(['honest', 'honest', 'honest']);
  const channel = await world.bed.open(DEPOSIT);
  await world.bed.sql(`UPDATE channels SET balance = ${LIE}, state_block = 9999999, confirmed_block = 9999999`);
  await world.chain.agreed.head();
  expect(await callsOf(channel)).toBe(2);
});

describe('the first start with this release', () => {
  test('reads every channel with money or charges, those with charges first, and none again', async () => {
    world = await openLyingWorld(['honest', 'honest']);
    const rich = await world.bed.open(DEPOSIT);
    const empty = await world.bed.open(0n);
    const owing = await charged(PRICE);
    for (const { id } of [rich, empty, owing]) world.lie.put(id, world.bed.contract.of(id));
    await poison(2 ** 52);
    await world.bed.sql(`UPDATE channels SET balance = 0 WHERE id = x'${empty.hex.slice(2)}'`);
    await world.watch.run();
    const believed = async ({ id }: { id: Uint8Array }) => (await world.bed.noted(id)).isConfirmed;
    expect(await Promise.all([rich, empty, owing].map(believed))).toEqual([true, false, true]);
    const asked = world.servers[0]?.bodies.flat() as { method: string; params: [{ data: string }] }[];
    const reads = asked.filter(({ method }) => method === 'eth_call').map(({ params: [{ data }] }) => data);
    expect(reads.map((data) => [owing, rich].findIndex(({ hex }) => data.includes(hex.slice(2))))).toEqual([0, 1]);
    await world.watch.run();
    expect(world.servers[0]?.count('eth_call')).toBe(2);
  });
});

test('at rest a round of the watch asks each provider once', async () => {
  world = await openLyingWorld(['honest', 'honest', 'honest']);
  await charged(PRICE);
  await world.watch.run();
  const before = world.servers.map(({ bodies }) => bodies.length);
  for (let round = 1; round <= 5; round++) {
    world.bed.contract.block += 10;
    await world.chain.agreed.head();
    await world.watch.run();
  }
  // The head is read here in place of the watch over the heads.
  expect(world.servers.map(({ bodies }, at) => bodies.length - (before[at] ?? 0))).toEqual([10, 10, 10]);
});

test('a claim that the contract refuses stops the sales on its channel and raises the alarm', async () => {
  world = await openLyingWorld(['honest', 'honest', 'honest']);
  const channel = await charged(PRICE);
  world.bed.contract.refusedRows.add(channel.hex);
  expect(await world.claims.run(true, signal)).toMatchObject({ setAside: 1 });
  expect(world.bed.messages()).toEqual([expect.stringMatching(/^error: ALERT: the contract refuses a claim/)]);
  const { ask, voucher } = await openChannelSale({ over: world });
  const present = () => ask({}, voucher(DEPOSIT, { of: channel }));
  expect(await present()).toBe('503 settlement_unavailable, charged: false');
  world.bed.contract.refusedRows.clear();
  await world.bed.clock.advance(60_000);
  await world.claims.run(true, signal);
  expect(await present()).toBe('answer 1');
});

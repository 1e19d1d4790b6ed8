import { randomBytes } from 'node:crypto';
import { encodeFunctionResult, parseAbi } from 'viem';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { bytesToHex } from '../../../../../src/lib/hex.ts';
import type { MinedCost } from '../../../../../src/payment/relayer/gas.ts';
import { createRelayer } from '../../../../../src/payment/relayer/relayer.ts';
import { createWallet } from '../../../../../src/payment/relayer/transactions.ts';
import { type Intent, type Outcome, REVERTED } from '../../../../../src/payment/settler.ts';
import { CALL_GAS, createChainCheck } from '../../../../../src/payment/usdc/checks.ts';
import { createEvidence } from '../../../../../src/payment/usdc/evidence.ts';
import { MULTICALL3 } from '../../../../../src/payment/usdc/token.ts';
import { openClient } from '../../../../support/chain/client.ts';
import { RpcFault } from '../../../../support/chain/rpc-server.ts';
import { createManualClock } from '../../../../support/manual-clock.ts';
import { addMempool, settles } from '../../../../support/usdc/mempool.ts';
import { USDC } from '../../../../support/usdc/payments.ts';
import {
  paidReceipt,
  randomAuthorization,
  randomIntent,
  randomOperation,
  startTokenNode,
} from '../../../../support/usdc/token-node.ts';

const [BATCH_WINDOW_MS, STALL_MS, POLL_MS] = [200, 30_000, 60_000];
const abi = parseAbi([
  'struct Result { bool success; bytes returnData; }',
  'function aggregate3(uint256) view returns (Result[] memory returnData)',
]);
/** A machine that is busy must not fail the test. */
const eventually = (check: () => void) => vi.waitFor(check, { timeout: 60_000, interval: 2 });

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

/** The real relayer and all its parts over a node whose blocks the test makes; the clock stands until it is moved. */
async function bench() {
  const node = await startTokenNode();
  const pool = addMempool(node);
  const honest = node.server.methods.eth_call;
  node.server.methods.eth_call = (params) => {
    const [call] = params as [{ to: string; data: string }];
    if (call.to !== MULTICALL3) return honest?.(params);
    const count = call.data.split(USDC.slice(2).padStart(64, '0')).length - 1;
    const result = Array.from({ length: count }, () => ({ success: true, returnData: '0x' as const }));
    return encodeFunctionResult({ abi, functionName: 'aggregate3', result });
  };
  const clock = createManualClock(Date.now());
  const chain = openClient({ rpcUrls: [node.server.url], chainId: 5042, timeoutMs: 30_000 });
  const wallet = createWallet(bytesToHex(randomBytes(32)), 5042);
  const heads = new Set<() => void>();
  const self = {
    node,
    pool,
    clock,
    heads,
    wallet,
    costs: [] as MinedCost[],
    noted: [] as string[][],
    /** What the ledger throws next. */
    faults: [] as Error[],
    /** What the ledger waits for before it answers. */
    hold: Promise.resolve(),
    careful: false,
    settle: (...intents: Intent[]): Promise<Outcome>[] => relayer.settle(intents) as Promise<Outcome>[],
    head: () => {
      for (const tell of heads) tell();
    },
  };
  const relayer = createRelayer({
    chain,
    usdc: USDC,
    wallet,
    clock,
    pollMs: POLL_MS,
    gatherMs: BATCH_WINDOW_MS,
    stallMs: STALL_MS,
    check: createChainCheck(chain, USDC, () => wallet.address),
    evidence: createEvidence(chain, USDC),
    token: { check: async () => false },
    isCareful: () => self.careful,
    blockSharePercent: 60,
    onHead: (tell) => {
      heads.add(tell);
      return () => void heads.delete(tell);
    },
    noteBroadcast: async (entries) => {
      const fault = self.faults.shift();
      if (fault) throw fault;
      self.noted.push(entries.map(({ id }) => id));
      await self.hold;
      return new Set(entries.map(({ id }) => id));
    },
    onMined: (cost) => void self.costs.push(cost),
    log: { warn: () => {} },
  });
  closing.push(
    () => relayer.stop(),
    () => chain.close(),
    () => node.server.stop(),
  );
  return { ...self, self, relayer };
}
/** Tells of heads until what is waited for has come: a look that is under way may have begun before. */
async function ended<T>({ head }: { head: () => void }, outcome: Promise<T>): Promise<T> {
  let end: { value: T } | null = null;
  void outcome.then((value) => {
    end = { value };
  });
  await eventually(() => {
    head();
    expect(end).not.toBeNull();
  });
  return (end as unknown as { value: T }).value;
}
const settledIn = ({ transactionHash }: { transactionHash: string }) => ({
  kind: 'settled',
  block: 100,
  paid: 1000n,
  transaction: Buffer.from(transactionHash.slice(2), 'hex'),
});

test('an operation that was sent before ends as the chain shows it, and its caller is told', async () => {
  const bed = await bench();
  const end = { kind: 'failed', reason: 'its nonce is used' } as const;
  bed.node.server.methods.eth_call = () => {
    throw new RpcFault(3, 'execution reverted');
  };
  const outcome = bed.relayer.operate({ ...randomOperation(), broadcast: true, lookUp: async () => end });
  await bed.clock.advance(BATCH_WINDOW_MS);
  expect(await ended(bed, outcome)).toEqual(end);
});

describe('a payment', () => {
  test('alone is sent to the token at once, and has settled when a block holds it', async () => {
    const bed = await bench();
    const intent = randomIntent();
    const [outcome] = bed.settle(intent);
    const sent = await bed.pool.arrived(1);
    expect([sent.to, sent.nonce, settles(sent, intent.authorization, USDC)]).toEqual([USDC, 0, true]);
    expect(bed.noted).toEqual([[intent.id]]);
    const receipt = bed.pool.mine(sent, [intent.authorization]);
    expect(await ended(bed, outcome as Promise<Outcome>)).toEqual(settledIn(receipt));
    expect(bed.costs).toMatchObject([
      { payments: 1, settled: 1, gasUsed: 100_000n, gasPrice: 20_000_000_000n, failedWei: 0n },
    ]);
    await eventually(() => expect(bed.heads.size).toBe(0));
  });

  test('that comes with others goes together with them, in one transaction', async () => {
    const bed = await bench();
    const intents = [randomIntent(), randomIntent(), randomIntent()];
    const outcomes = bed.settle(...intents);
    const sent = await bed.pool.arrived(1);
    expect(sent.to).toBe(MULTICALL3);
    const authorizations = intents.map(({ authorization }) => authorization);
    const receipt = bed.pool.mine(sent, authorizations);
    for (const outcome of outcomes) expect(await ended(bed, outcome)).toEqual(settledIn(receipt));
    expect([bed.pool.sent.length, bed.costs]).toMatchObject([1, [{ payments: 3, settled: 3 }]]);
  });

  test('after another takes the next nonce without asking the chain again', async () => {
    const bed = await bench();
    const [first, second] = [randomIntent(), randomIntent()];
    const [one] = bed.settle(first);
    bed.pool.mine(await bed.pool.arrived(1), [first.authorization]);
    await ended(bed, one as Promise<Outcome>);
    const [two] = bed.settle(second);
    const sent = await bed.pool.arrived(2);
    expect([sent.nonce, bed.node.server.count('eth_getTransactionCount')]).toEqual([1, 1]);
    bed.pool.mine(sent, [second.authorization]);
    expect((await ended(bed, two as Promise<Outcome>)).kind).toBe('settled');
  });
});

describe('while a transaction is in flight, a payment', () => {
  async function inFlight() {
    const bed = await bench();
    const first = randomIntent();
    const [outcome] = bed.settle(first);
    const sent = await bed.pool.arrived(1);
    await eventually(() => expect(bed.heads.size).toBe(1));
    return { ...bed, first, sent, outcome: outcome as Promise<Outcome> };
  }

  test('waits a moment for others to share the next transaction with', async () => {
    const bed = await inFlight();
    const [second, third] = [randomIntent(), randomIntent()];
    bed.settle(second);
    await eventually(() => expect(bed.clock.pendingSleeps()).toContain(BATCH_WINDOW_MS));
    bed.settle(third);
    await bed.clock.advance(BATCH_WINDOW_MS - 1);
    expect(bed.pool.sent).toHaveLength(1);
    await bed.clock.advance(1);
    const next = await bed.pool.arrived(2);
    expect([next.nonce, next.to]).toEqual([1, MULTICALL3]);
    expect(bed.noted[1]).toEqual([second.id, third.id]);
  });

  test('waits no longer once the sender is free', async () => {
    const bed = await inFlight();
    bed.settle(randomIntent());
    await eventually(() => expect(bed.clock.pendingSleeps()).toContain(BATCH_WINDOW_MS));
    bed.pool.mine(bed.sent, [bed.first.authorization]);
    bed.head();
    expect((await bed.pool.arrived(2)).nonce).toBe(1);
  });
});

describe('a payment that is not sent', () => {
  test('because it would have run out when it is mined has failed once the chain’s own time says so', async () => {
    const bed = await bench();
    const lastSecond = BigInt(Math.floor((bed.clock.nowMs() + 1000) / 1000));
    const [late] = bed.settle(randomIntent({ authorization: { ...randomAuthorization(), validBefore: 1n } }));
    expect(await late).toEqual({ kind: 'failed', reason: 'invalid_exact_evm_payload_authorization_valid_before' });
    bed.settle(randomIntent({ authorization: { ...randomAuthorization(), validBefore: lastSecond } }));
    const good = randomIntent({ authorization: { ...randomAuthorization(), validBefore: lastSecond + 1n } });
    bed.settle(good);
    expect(settles(await bed.pool.arrived(1), good.authorization, USDC)).toBe(true);
    expect(bed.noted).toEqual([[good.id]]);
  });

  test('because the ledger could not be written is sent a moment later, with what came meanwhile', async () => {
    const bed = await bench();
    bed.self.faults.push(new Error('the disk is away'));
    const [first, second] = [randomIntent(), randomIntent()];
    bed.settle(first);
    await eventually(() => expect(bed.clock.pendingSleeps()).toContain(500));
    bed.settle(second);
    expect(bed.pool.sent).toEqual([]);
    await bed.clock.advance(500);
    await bed.pool.arrived(1);
    expect(bed.noted).toEqual([[first.id, second.id]]);
  });

  test('because the chain cannot be read is sent a moment later', async () => {
    const bed = await bench();
    bed.node.server.fault = '500';
    bed.settle(randomIntent());
    await eventually(() => expect(bed.clock.pendingSleeps()).toContain(500));
    bed.node.server.fault = null;
    await bed.clock.advance(500);
    expect((await bed.pool.arrived(1)).nonce).toBe(0);
  });

  test('because its payer alone could not be read is tried again after a pause; the others go', async () => {
    const bed = await bench();
    const [unread, other] = [randomIntent(), randomIntent()];
    const honest = bed.node.server.methods.eth_call;
    const address = bytesToHex(unread.authorization.from).slice(2);
    let isAway = true;
    bed.node.server.methods.eth_call = (params) => {
      const [call] = params as [{ to: string; data: string }];
      if (isAway && call.to !== MULTICALL3 && call.data.includes(address)) throw new RpcFault(-32000, 'busy');
      return honest?.(params);
    };
    bed.settle(unread, other);
    await bed.pool.arrived(1);
    expect(bed.noted).toEqual([[other.id]]);
    isAway = false;
    await eventually(() => expect(bed.clock.pendingSleeps()).toContain(500));
    await bed.clock.advance(500 + BATCH_WINDOW_MS);
    await bed.pool.arrived(2);
    expect(bed.noted[1]).toEqual([unread.id]);
  });
});

describe('a payer whose payment used up the whole gas of its transaction', () => {
  async function exhausted() {
    const bed = await bench();
    const first = randomIntent();
    const [outcome] = bed.settle(first);
    const sent = await bed.pool.arrived(1);
    const gasUsed = `0x${sent.gas.toString(16)}`;
    bed.pool.mine(sent, [], { ...paidReceipt([], { status: '0x0', gasUsed }), transactionHash: sent.hash });
    expect(await ended(bed, outcome as Promise<Outcome>)).toEqual({ kind: 'failed', reason: REVERTED });
    return { ...bed, payer: first.authorization.from };
  }

  test('is refused, and its waiting payments go back unsent, while other payers are not affected', async () => {
    const bed = await exhausted();
    expect(bed.relayer.refuses?.(bed.payer)).toMatch(/gas/);
    expect(bed.relayer.refuses?.(randomBytes(20))).toBeNull();
    expect(bed.relayer.refused?.()).toEqual([[bytesToHex(bed.payer), bed.relayer.refuses?.(bed.payer)]]);
    const own = randomIntent({ authorization: { ...randomAuthorization(), from: bed.payer } });
    const other = randomIntent();
    const [back] = bed.settle(own, other);
    expect(await back).toEqual({ kind: 'failed', reason: REVERTED });
    await bed.pool.arrived(2);
    expect(bed.noted[1]).toEqual([other.id]);
    expect(bed.costs).toMatchObject([{ settled: 0, payments: 1 }]);
  });

  test('keeps payments that a third party may hold: they are sent all the same, because only the chain can end them', async () => {
    const bed = await exhausted();
    const own = randomIntent({ authorization: { ...randomAuthorization(), from: bed.payer }, broadcast: true });
    bed.settle(own);
    await bed.pool.arrived(2);
    expect(bed.noted[1]).toEqual([own.id]);
  });
});

describe('the relayer', () => {
  test('expects to pay for open settlements at the present price of gas, and for nothing else', async () => {
    const bed = await bench();
    expect(bed.relayer.expectedWei()).toBe(0n);
    const intents = [randomIntent(), randomIntent()];
    const outcomes = bed.settle(...intents);
    const sent = await bed.pool.arrived(1);
    // 120,000 gas each at the base fee of 20 gwei and a tenth for the block's maker.
    expect(bed.relayer.expectedWei()).toBe(2n * 120_000n * 20_100_000_000n);
    bed.pool.mine(
      sent,
      intents.map(({ authorization }) => authorization),
    );
    for (const outcome of outcomes) await ended(bed, outcome);
    expect(bed.relayer.expectedWei()).toBe(0n);
  });

  test('expects to pay for calls and operations by their own gas', async () => {
    const bed = await bench();
    const call = { to: Buffer.alloc(20, 7), data: Buffer.alloc(4) };
    bed.settle(randomIntent(), randomIntent({ call }));
    void bed.relayer.operate(randomOperation({ gas: 500_000n }));
    await bed.pool.arrived(1);
    // A transfer as above; four fifths of the gas limit of a call.
    const gas = 120_000n + (CALL_GAS * 4n) / 5n + 500_000n;
    expect(bed.relayer.expectedWei()).toBe(gas * 20_100_000_000n);
  });

  test('simulates each payment before it sends it once failures have cost enough', async () => {
    const bed = await bench();
    bed.self.careful = true;
    bed.settle(randomIntent());
    await bed.pool.arrived(1);
    const trials = bed.node.server.bodies.flat().filter((body) => {
      const { method, params } = body as { method: string; params: [{ from?: string }] };
      return method === 'eth_call' && params[0].from === bed.wallet.address;
    });
    expect(trials).toHaveLength(1);
  });

  test('sells no more while its oldest payment is late, and says why', async () => {
    const bed = await bench();
    expect(bed.relayer.unavailable()).toBeNull();
    const intent = randomIntent();
    const [outcome] = bed.settle(intent);
    const sent = await bed.pool.arrived(1);
    await bed.clock.advance(STALL_MS);
    expect(bed.relayer.unavailable()).toBeNull();
    await bed.clock.advance(1);
    expect(bed.relayer.unavailable()).toBe('earlier settlements are late');
    bed.pool.mine(sent, [intent.authorization]);
    await ended(bed, outcome as Promise<Outcome>);
    expect(bed.relayer.unavailable()).toBeNull();
  });

  test('that stops leaves what is open unknown, takes nothing more and listens to no more blocks', async () => {
    const bed = await bench();
    const [open] = bed.settle(randomIntent());
    await bed.pool.arrived(1);
    await bed.relayer.stop();
    expect(await open).toEqual({ kind: 'unknown' });
    expect([bed.heads.size, bed.relayer.unavailable()]).toEqual([0, 'the service is stopping']);
    const [refused] = bed.settle(randomIntent());
    expect(await refused).toEqual({ kind: 'unknown' });
    expect(bed.pool.sent).toHaveLength(1);
  });

  test('that stops waits for the ledger’s answer, and sends nothing after it', async () => {
    const bed = await bench();
    let answer = (): void => {};
    bed.self.hold = new Promise((resolve) => {
      answer = resolve;
    });
    const reported: string[] = [];
    const [open] = bed.settle(randomIntent());
    await eventually(() => expect(bed.noted).toHaveLength(1));
    const stopped = bed.relayer.stop().then(() => reported.push('stopped'));
    void open?.then(({ kind }) => reported.push(kind));
    await new Promise((next) => setImmediate(next));
    expect(reported).toEqual([]);
    answer();
    await stopped;
    expect([reported, bed.pool.sent]).toEqual([['unknown', 'stopped'], []]);
  });

  test('that stops while it waits for the chain ends what is queued as unknown', async () => {
    const bed = await bench();
    bed.node.server.fault = '500';
    const [queued] = bed.settle(randomIntent());
    await eventually(() => expect(bed.clock.pendingSleeps()).toContain(500));
    await bed.relayer.stop();
    expect(await queued).toEqual({ kind: 'unknown' });
    expect(bed.pool.sent).toEqual([]);
  });
});

describe('a transaction that is late', () => {
  async function sentOnce() {
    const bed = await bench();
    const intent = randomIntent();
    const [outcome] = bed.settle(intent);
    const sent = await bed.pool.arrived(1);
    await eventually(() => expect(bed.clock.pendingSleeps()).toContain(POLL_MS));
    return { ...bed, intent, sent, outcome: outcome as Promise<Outcome> };
  }
  /** Time passes, and a block comes; the relayer looks. */
  async function late(bed: Awaited<ReturnType<typeof sentOnce>>, ms = 3001): Promise<void> {
    await bed.clock.advance(ms);
    bed.head();
  }

  test('is sent again unchanged, and with a quarter more when it is late again, which is on disk before', async () => {
    const bed = await sentOnce();
    await late(bed);
    expect((await bed.pool.arrived(2)).raw).toBe(bed.sent.raw);
    await eventually(() => expect(bed.clock.pendingSleeps()).toContain(POLL_MS));
    await late(bed);
    const raised = await bed.pool.arrived(3);
    expect([raised.nonce, raised.maxFeePerGas]).toEqual([bed.sent.nonce, (bed.sent.maxFeePerGas * 5n) / 4n]);
    expect(bed.noted).toEqual([[bed.intent.id], [bed.intent.id]]);
    const receipt = bed.pool.mine(bed.sent, [bed.intent.authorization]);
    expect(await ended(bed, bed.outcome)).toEqual(settledIn(receipt));
  });

  test('is late after three seconds, and not before', async () => {
    const bed = await sentOnce();
    const looks = () => bed.node.server.count('eth_getTransactionReceipt');
    await late(bed, 3000);
    await eventually(() => expect(looks()).toBe(1));
    await eventually(() => expect(bed.clock.pendingSleeps()).toContain(POLL_MS));
    expect(bed.pool.sent).toHaveLength(1);
    await late(bed, 1);
    await bed.pool.arrived(2);
  });

  test('and no longer pays the base fee is replaced at a higher fee at once', async () => {
    const bed = await sentOnce();
    const honest = bed.node.server.methods.eth_getBlockByNumber;
    bed.node.server.methods.eth_getBlockByNumber = (params) => ({
      ...(honest?.(params) as object),
      baseFeePerGas: '0xba43b7400',
    });
    await late(bed);
    const raised = await bed.pool.arrived(2);
    expect([raised.nonce, raised.maxFeePerGas]).toEqual([bed.sent.nonce, 100_100_000_000n]);
  });

  test('and was mined just now is settled by it, not sent again', async () => {
    const bed = await sentOnce();
    let receipt: unknown = null;
    const count = bed.node.server.methods.eth_getTransactionCount;
    bed.node.server.methods.eth_getTransactionCount = (params) => {
      receipt ??= bed.pool.mine(bed.sent, [bed.intent.authorization]);
      return count?.(params);
    };
    await late(bed);
    expect(await bed.outcome).toEqual(settledIn(receipt as { transactionHash: string }));
    expect(bed.pool.sent).toHaveLength(1);
  });

  test('and whose nonce another transaction used gives its payment to a new one', async () => {
    const bed = await sentOnce();
    bed.pool.use();
    await late(bed);
    const again = await bed.pool.arrived(2);
    expect([again.nonce, settles(again, bed.intent.authorization, USDC)]).toEqual([1, true]);
    const receipt = bed.pool.mine(again, [bed.intent.authorization]);
    expect(await ended(bed, bed.outcome)).toEqual(settledIn(receipt));
  });

  test('and whose payment a third party has sent meanwhile is not replaced: its nonce is used unchanged', async () => {
    const bed = await sentOnce();
    const theirs = bed.node.pay(bed.intent.authorization);
    bed.node.server.methods.eth_getTransactionReceipt = ([hash]) => (hash === theirs.transactionHash ? theirs : null);
    await late(bed);
    expect(await bed.outcome).toEqual(settledIn(theirs));
    await bed.pool.arrived(2);
    await eventually(() => expect(bed.clock.pendingSleeps()).toContain(POLL_MS));
    await late(bed);
    expect((await bed.pool.arrived(3)).raw).toBe(bed.sent.raw);
  });

  test('whose receipt cannot be read is looked at again at the next block', async () => {
    const bed = await sentOnce();
    bed.node.server.fault = '500';
    bed.head();
    await eventually(() => expect(bed.node.server.bodies.length).toBeGreaterThan(0));
    bed.node.server.fault = null;
    bed.pool.mine(bed.sent, [bed.intent.authorization]);
    expect((await ended(bed, bed.outcome)).kind).toBe('settled');
  });

  test('is looked at without a block too, at every poll', async () => {
    const bed = await sentOnce();
    bed.pool.mine(bed.sent, [bed.intent.authorization]);
    await bed.clock.advance(POLL_MS);
    expect((await bed.outcome).kind).toBe('settled');
  });
});

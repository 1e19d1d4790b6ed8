import { afterEach, describe, expect, test } from 'vitest';
import { bytesToHex, hexToBytes } from '../../../../../src/lib/hex.ts';
import {
  type Flight,
  newest,
  newOperationJob,
  type OperationJob,
} from '../../../../../src/payment/relayer/transactions.ts';
import type { Operation } from '../../../../../src/payment/settler.ts';
import { RpcFault } from '../../../../support/chain/rpc-server.ts';
import { USDC } from '../../../../support/usdc/payments.ts';
import { openRelayerBench } from '../../../../support/usdc/relayer-bench.ts';
import { paidReceipt, randomJob, randomOperation } from '../../../../support/usdc/token-node.ts';

// Operations, which are no payments, through the machine with its real effects over a node.

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

const DONE = { kind: 'done', transaction: Buffer.alloc(32, 0xd0), block: 90, amount: 5n } as const;

async function bench() {
  const bed = await openRelayerBench();
  closing.push(bed.close);
  const { server } = bed.node;
  const honest = server.methods.eth_call;
  const noted: { id: string; transaction: string; sentBefore: number }[] = [];
  const lookUps: string[] = [];
  const self = {
    noted,
    lookUps,
    /** What the contract's simulation throws; null lets it through. */
    refusal: null as RpcFault | null,
    /** What a look at the chain shows. */
    shown: async (): Promise<typeof DONE | null> => null,
    sent: (): number => server.count('eth_sendRawTransaction'),
    operate(changes: Partial<Operation> = {}): OperationJob {
      const operation: Operation = {
        ...randomOperation(),
        note: async (transaction) => {
          noted.push({ id: operation.id, transaction: bytesToHex(transaction), sentBefore: self.sent() });
          return true;
        },
        lookUp: () => {
          lookUps.push(operation.id);
          return self.shown();
        },
        ...changes,
      };
      const job = newOperationJob(operation, bed.clock.nowMs());
      targets.add(bytesToHex(operation.to));
      bed.feed({ kind: 'operated', job });
      return job;
    },
    /** Carries an operation out up to its transaction. */
    async launch(changes: Partial<Operation> = {}): Promise<{ job: OperationJob; flight: Flight }> {
      const job = self.operate(changes);
      await bed.release('window');
      return { job, flight: flightOf(job) };
    },
    /** Mines the newest transaction of a flight. */
    async mine(flight: Flight, status: '0x0' | '0x1'): Promise<`0x${string}`> {
      const { hash } = newest(flight);
      const receipt = paidReceipt([], { transactionHash: hash, status });
      server.methods.eth_getTransactionReceipt = ([asked]) => (asked === hash ? receipt : null);
      await bed.release('poll');
      return hash;
    },
    simulated: (): number =>
      server.bodies.flat().filter((body) => {
        const { method, params } = body as { method: string; params: [{ to?: string }] };
        return method === 'eth_call' && targets.has(String(params[0].to));
      }).length,
  };
  const targets = new Set<string>();
  server.methods.eth_call = (params) => {
    const [{ to }] = params as [{ to: string }];
    if (targets.has(to) && self.refusal) throw self.refusal;
    return honest?.(params);
  };
  function flightOf(job: OperationJob): Flight {
    const flight = bed.state.flights.all().find((one) => newest(one).operationJob === job);
    if (!flight) throw new Error('the operation is not in flight');
    return flight;
  }
  return { bed, self, flightOf };
}

describe('an operation', () => {
  test('is simulated, written down where it belongs, then sent alone to its contract with its own gas', async () => {
    const { bed, self } = await bench();
    const { job, flight } = await self.launch({ gas: 777_000n });
    const { hash, jobs, gas } = newest(flight);
    expect([self.simulated(), jobs, gas]).toEqual([1, [], 777_000n]);
    expect(self.noted).toEqual([{ id: job.operation.id, transaction: hash, sentBefore: 0 }]);
    expect([self.sent(), bed.noted]).toEqual([1, []]);
  });

  test('is done when its mined transaction shows its event', async () => {
    const { bed, self } = await bench();
    const { job, flight } = await self.launch();
    const hash = await self.mine(flight, '0x1');
    expect(bed.operationOutcomes(job)).toEqual([
      { kind: 'done', transaction: hexToBytes(hash), block: 100, amount: 7n },
    ]);
    expect([bed.state.flights.size(), bed.state.openOperations.size, self.lookUps]).toEqual([0, 0, []]);
  });

  test('costs gas that counts for the day, and never for the budget of failed settlements', async () => {
    const { bed, self } = await bench();
    const { flight } = await self.launch();
    await self.mine(flight, '0x0');
    const [report] = bed.effects.filter(({ kind }) => kind === 'report');
    const cost = { payments: 0, settled: 0, failedWei: 0n, wei: 100_000n * 20_000_000_000n };
    expect(report).toMatchObject({ cost });
  });

  test('that the contract refuses fails with the node’s reason, and nothing is written down or sent', async () => {
    const { bed, self } = await bench();
    self.refusal = new RpcFault(3, 'execution reverted: ClaimExceedsBalance');
    const job = self.operate();
    await bed.release('window');
    expect(bed.operationOutcomes(job)).toEqual([{ kind: 'failed', reason: 'execution reverted: ClaimExceedsBalance' }]);
    expect([self.noted, self.sent(), self.lookUps, bed.state.sender]).toEqual([[], 0, [], 'idle']);
  });

  test('that was sent before and is refused now has ended where the chain shows it', async () => {
    const { bed, self } = await bench();
    self.refusal = new RpcFault(3, 'execution reverted');
    self.shown = async () => DONE;
    const job = self.operate({ broadcast: true });
    await bed.release('window');
    expect([bed.operationOutcomes(job), self.sent()]).toEqual([[DONE], 0]);
  });

  test('that was sent before and that no transaction can carry out any more fails by the chain, and nothing is sent', async () => {
    const { bed, self } = await bench();
    self.refusal = new RpcFault(3, 'execution reverted');
    const end = { kind: 'failed', reason: 'its nonce is used' } as const;
    const job = self.operate({ broadcast: true, lookUp: async () => end });
    await bed.release('window');
    expect([bed.operationOutcomes(job), self.sent(), bed.state.sender]).toEqual([[end], 0, 'idle']);
  });

  test('that was sent before and is refused now is sent again, because only a mined transaction proves that it failed', async () => {
    const { bed, self, flightOf } = await bench();
    self.refusal = new RpcFault(3, 'execution reverted');
    const job = self.operate({ broadcast: true });
    await bed.release('window');
    expect([bed.operationOutcomes(job), self.lookUps.length, self.simulated()]).toEqual([[], 1, 1]);
    await bed.release('window');
    expect([self.sent(), self.simulated()]).toEqual([1, 1]);
    await self.mine(flightOf(job), '0x0');
    expect(bed.operationOutcomes(job)).toEqual([{ kind: 'failed', reason: 'the transaction reverted' }]);
  });

  test.each([
    ['0x0', 'the transaction reverted'],
    ['0x1', 'the transaction was mined without the event'],
  ] as const)('mined without its event (status %s) fails by the chain, and bans no payer', async (status, reason) => {
    const { bed, self } = await bench();
    const { job, flight } = await self.launch({ readReceipt: () => null });
    await self.mine(flight, status);
    expect(bed.operationOutcomes(job)).toEqual([{ kind: 'failed', reason }]);
    expect([self.lookUps.length, bed.state.bans.size]).toEqual([1, 0]);
  });

  test('mined without its event is done where another transaction did the same', async () => {
    const { bed, self } = await bench();
    self.shown = async () => DONE;
    const { job, flight } = await self.launch({ readReceipt: () => null });
    await self.mine(flight, '0x1');
    expect(bed.operationOutcomes(job)).toEqual([DONE]);
  });

  test('that no longer awaits its end is not sent, and frees its nonce', async () => {
    const { bed, self } = await bench();
    const job = self.operate({ note: async () => false });
    await bed.release('window');
    expect(bed.operationOutcomes(job)).toEqual([{ kind: 'unknown' }]);
    expect([self.sent(), bed.state.flights.size(), bed.state.sender]).toEqual([0, 0, 'idle']);
  });

  test('that cannot be written down is not sent, and is tried again after a pause', async () => {
    const { bed, self } = await bench();
    let tries = 0;
    const job = self.operate({
      note: async () => {
        if (tries++ === 0) throw new Error('the disk is away');
        return true;
      },
    });
    await bed.release('window');
    expect([self.sent(), bed.state.operations, bed.state.sender]).toEqual([0, [job], 'pause']);
    await bed.release('pause');
    await bed.release('window');
    expect([self.sent(), tries]).toEqual([1, 2]);
  });

  test('that a node refuses is looked up, and sent again under a nonce that is free', async () => {
    const { bed, self } = await bench();
    bed.node.server.methods.eth_sendRawTransaction = () => {
      throw new RpcFault(-32000, 'nonce too low');
    };
    const { job } = await self.launch();
    bed.node.server.methods.eth_getTransactionCount = () => '0x9';
    bed.node.server.methods.eth_sendRawTransaction = () => '0x1';
    await bed.release('refused');
    await bed.release('window');
    expect([self.lookUps.length, self.sent(), [...job.nonces], bed.operationOutcomes(job)]).toEqual([1, 2, [3, 9], []]);
  });

  test('that is late is sent to every provider, then replaced at a higher fee, and written down again before that', async () => {
    const { bed, self } = await bench();
    const { job, flight } = await self.launch();
    for (let late = 0; late < 2; late++) {
      await bed.clock.advance(3001);
      await bed.release('poll');
    }
    const [first, second] = flight.transactions;
    expect([flight.transactions.length, second?.operationJob]).toEqual([2, job]);
    expect(second?.price.maxFeePerGas).toBeGreaterThan(first?.price.maxFeePerGas ?? 0n);
    expect(self.noted.map(({ transaction }) => transaction)).toEqual([first?.hash, second?.hash]);
    expect(bed.effects.filter(({ kind }) => kind === 'resendEverywhere')).toMatchObject([
      { raws: [first?.raw] },
      { raws: [second?.raw] },
    ]);
  });

  test('that the chain cannot show for more than five seconds ends as unknown', async () => {
    const { bed, self } = await bench();
    self.shown = async () => {
      throw new Error('the chain is away');
    };
    const { job, flight } = await self.launch({ readReceipt: () => null });
    await self.mine(flight, '0x1');
    for (let tries = 0; tries < 10; tries++) {
      expect(bed.operationOutcomes(job)).toEqual([]);
      await bed.clock.advance(501);
      await bed.release('operation');
    }
    expect([bed.operationOutcomes(job), self.lookUps.length]).toEqual([[{ kind: 'unknown' }], 11]);
  });

  test('whose simulation no node carries out does not hold up payments, and ends as unknown after five seconds', async () => {
    const { bed, self } = await bench();
    self.refusal = new RpcFault(-32000, 'the gas is above the cap');
    const job = self.operate();
    await bed.release('window');
    expect([bed.state.sender, self.sent()]).toEqual(['idle', 0]);
    for (let tries = 0; tries < 10; tries++) {
      await bed.clock.advance(501);
      await bed.release('operation');
      await bed.release('window');
    }
    expect(bed.operationOutcomes(job)).toEqual([{ kind: 'unknown' }]);
  });

  test('ends as unknown when the service stops, also one that comes after that', async () => {
    const { bed, self } = await bench();
    const { job } = await self.launch();
    bed.feed({ kind: 'stopped' });
    const late = self.operate();
    await bed.release('poll');
    expect([bed.operationOutcomes(job), bed.operationOutcomes(late)]).toEqual([
      [{ kind: 'unknown' }],
      [{ kind: 'unknown' }],
    ]);
  });
});

describe('among others, an operation', () => {
  test('goes after the payments that wait, in a transaction of its own', async () => {
    const { bed, self } = await bench();
    const payment = randomJob();
    const job = self.operate();
    bed.feed({ kind: 'submitted', jobs: [payment] });
    await bed.release('window');
    const [first] = bed.state.flights.all();
    expect([first && newest(first).jobs, self.noted]).toEqual([[payment], []]);
    await bed.release('window');
    const [, second] = bed.state.flights.all();
    expect(second && [newest(second).operationJob, newest(second).jobs, second.nonce]).toEqual([job, [], 4]);
  });

  test('that has waited for five seconds goes before payments, so that a stream of payments cannot hold it up', async () => {
    const { bed, self } = await bench();
    const job = self.operate();
    await bed.clock.advance(5001);
    bed.feed({ kind: 'submitted', jobs: [randomJob()] });
    await bed.release('window');
    const [first] = bed.state.flights.all();
    expect(first && newest(first).operationJob).toBe(job);
  });

  test('waits while another one is in flight, so that operations never fill a block', async () => {
    const { bed, self } = await bench();
    const { flight } = await self.launch();
    const second = self.operate();
    expect([bed.state.operations, bed.state.sender]).toEqual([[second], 'idle']);
    await self.mine(flight, '0x1');
    await bed.release('window');
    expect(bed.state.flights.all().map((one) => newest(one).operationJob)).toEqual([second]);
  });

  test('is never simulated for a price of gas that a contract could distinguish from the real one', async () => {
    const { bed, self } = await bench();
    const { job } = await self.launch();
    const to = bytesToHex(job.operation.to);
    const asked = bed.node.server.bodies.flat().find((body) => JSON.stringify(body).includes(to));
    expect(asked).toMatchObject({
      params: [{ to, gas: '0x7a120', gasPrice: `0x${bed.prices.gasPrice.toString(16)}` }, 'latest'],
    });
    expect(to).not.toBe(USDC);
  });
});

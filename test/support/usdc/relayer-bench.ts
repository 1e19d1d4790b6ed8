import { randomBytes } from 'node:crypto';
import { encodeFunctionResult, parseAbi } from 'viem';
import type { ChainClient } from '../../../src/chain/rpc/client.ts';
import { bytesToHex } from '../../../src/lib/hex.ts';
import { pricesAt } from '../../../src/payment/relayer/gas.ts';
import { step } from '../../../src/payment/relayer/machine.ts';
import { createEffects } from '../../../src/payment/relayer/requests.ts';
import {
  type Ask,
  createState,
  type Effect,
  type Event,
  type Moment,
  type Sorting,
} from '../../../src/payment/relayer/state.ts';
import {
  createWallet,
  type Flight,
  type Job,
  newest,
  type OperationJob,
} from '../../../src/payment/relayer/transactions.ts';
import type { OperationOutcome, Outcome } from '../../../src/payment/settler.ts';
import { createChainCheck, createTokenWatch } from '../../../src/payment/usdc/checks.ts';
import { createEvidence, type TransactionReceipt } from '../../../src/payment/usdc/evidence.ts';
import { isBanned } from '../../../src/payment/usdc/payer-reads.ts';
import { openClient } from '../chain/client.ts';
import { createManualClock } from '../manual-clock.ts';
import { USDC } from './payments.ts';
import { startTokenNode } from './token-node.ts';

const abi = parseAbi([
  'struct Result { bool success; bytes returnData; }',
  'function aggregate3(uint256) view returns (Result[] memory returnData)',
]);
type Wait = Extract<Ask, { kind: 'wait' }>;
const GWEI = 10n ** 9n;

/**
 * Runs the machine with its real effects over a token node. Effects are carried out at once, except waits. Those are held, so that a test can read
 * the state at rest. `spoil` changes the chain client to make it fail.
 */
export async function openRelayerBench({ spoil = (chain: ChainClient): ChainClient => chain } = {}) {
  const node = await startTokenNode();
  node.server.methods.eth_sendRawTransaction = () => '0x1';
  node.server.methods.eth_getTransactionCount = () => '0x3';
  const client = openClient({ rpcUrls: [node.server.url], chainId: 5042, timeoutMs: 60_000 });
  const chain = spoil(client);
  const clock = createManualClock(1_800_000_000_000);
  const wallet = createWallet(bytesToHex(randomBytes(32)), 5042);
  const stopping = new AbortController();
  const token = createTokenWatch({
    chain,
    usdc: USDC,
    payTo: USDC,
    sender: () => USDC,
    clock,
    log: { error: () => {}, info: () => {} },
  });
  const state = createState({ usdc: USDC, gatherMs: 200, pollMs: 60_000, wallet, blockSharePercent: 60 });
  state.nonces.learn(3);
  const underWay = new Set<Promise<void>>();
  const ends = new Map<Job, Outcome[]>();
  const operationEnds = new Map<OperationJob, OperationOutcome[]>();
  const self = {
    node,
    token,
    state,
    clock,
    stopping,
    prices: pricesAt(20n * GWEI, 30_000_000n),
    effects: [] as Effect[],
    waits: [] as Wait[],
    noted: [] as { id: string; transaction: Uint8Array }[][],
    /** Rows that no longer await settlement, and the error that the ledger throws. */
    gone: new Set<string>(),
    fault: null as Error | null,
    outcomes: (job: Job): Outcome[] => ends.get(job) ?? [],
    operationOutcomes: (job: OperationJob): OperationOutcome[] => operationEnds.get(job) ?? [],
    isBanned: ({ intent }: Job): boolean => isBanned(state.bans, bytesToHex(intent.authorization.from), clock.nowMs()),
    /** The jobs that are queued again after a pause. */
    queuedLater: (): Job[] => self.waits.flatMap(({ timer }) => (timer.name === 'queue' ? timer.jobs : [])),
    feed,
    /** Resolves when only waits are left. */
    async rest(): Promise<void> {
      while (underWay.size > 0) await Promise.all(underWay);
    },
    /** Ends the waits with this name. */
    async release(name: Wait['timer']['name']): Promise<void> {
      const over = self.waits.filter(({ timer }) => timer.name === name);
      self.waits = self.waits.filter((wait) => !over.includes(wait));
      for (const effect of over) feed({ kind: 'wait', effect, answer: null });
      await self.rest();
    },
    /** Runs a round in which the simulation of these groups succeeded. Returns their flights. */
    async launch(...groups: Job[][]): Promise<Flight[]> {
      const before = state.flights.all();
      startRound(groups.flat());
      const readings = new Map(groups.flat().map((job) => [job, { used: false, hasCode: false }]));
      const results = (count: number) =>
        Array.from({ length: count }, () => ({ success: true, returnData: '0x' as const }));
      const simulated = groups.map(({ length }) => ({
        result:
          length === 1 ? '0x' : encodeFunctionResult({ abi, functionName: 'aggregate3', result: results(length) }),
      }));
      const plan = {
        limits: { gas: 0n, gasPrice: 0n },
        free: groups.flat(),
        trialGroups: groups,
        alone: [],
        unresolved: [],
      };
      feed({ kind: 'tryOut', effect: { kind: 'tryOut', plan }, answer: { readings, simulated } });
      const flights = state.flights.all().filter((flight) => !before.includes(flight));
      await self.rest();
      return flights;
    },
    /** Mines these jobs in one transaction with this receipt, right after it was signed. Does not wait for what follows. */
    mined(jobs: readonly Job[], receipt: (gas: bigint) => TransactionReceipt): TransactionReceipt {
      const flight = state.flights.open(jobs, self.prices);
      const transaction = newest(flight);
      const found = { ...receipt(transaction.gas), transactionHash: transaction.hash };
      const effect = { kind: 'fetchReceipts', sent: [{ flight, transaction }], for: 'look' } as const;
      feed({ kind: 'fetchReceipts', effect, answer: [{ result: found }] });
      return found;
    },
    /** Sorts jobs without a transaction in flight, or whose simulation failed. */
    async sort(jobs: readonly Job[], after: 'reopen' | 'examine'): Promise<void> {
      if (after === 'examine') startRound(jobs);
      const sorting: Sorting = { after, unused: [], toLookUp: [], next: 0, asked: 0 };
      carryOut({ kind: 'readPayers', jobs: jobs.filter(({ ended }) => !ended), for: sorting });
      await self.rest();
    },
    /** Starts the planning of a round with these jobs. */
    async plan(jobs: readonly Job[]): Promise<void> {
      startRound(jobs);
      feed({ kind: 'readFees', effect: { kind: 'readFees', for: 'round' }, answer: null });
      await self.rest();
    },
    close: async () => {
      await client.close();
      await node.server.stop();
    },
  };
  const effects = createEffects({
    chain,
    token,
    clock,
    usdc: USDC,
    relayer: wallet.address,
    signal: stopping.signal,
    check: createChainCheck(chain, USDC, () => USDC),
    evidence: createEvidence(chain, USDC),
    fees: { ready: async () => {}, refresh: async () => {} },
    noteBroadcast: async (entries) => {
      self.noted.push(entries);
      if (self.fault) throw self.fault;
      return new Set(entries.map(({ id }) => id).filter((id) => !self.gone.has(id)));
    },
  });

  function startRound(jobs: readonly Job[]): void {
    state.sender = 'round';
    state.round = { jobs, operation: null, rest: { doubtful: [], again: [] }, examined: [], next: 0 };
  }

  function feed(event: Event): void {
    const now: Moment = { nowMs: clock.nowMs(), prices: self.prices, isCareful: false };
    for (const effect of step(state, event, now)) carryOut(effect);
  }

  function carryOut(effect: Effect): void {
    self.effects.push(effect);
    switch (effect.kind) {
      case 'wait':
        return void self.waits.push(effect);
      case 'end':
        return void ends.set(effect.job, [...self.outcomes(effect.job), effect.outcome]);
      case 'endOperation':
        return void operationEnds.set(effect.job, [...self.operationOutcomes(effect.job), effect.outcome]);
      case 'resendEverywhere':
        return void effects.resendEverywhere(effect.raws);
      case 'wake':
      case 'listen':
      case 'stopListening':
      case 'report':
      case 'warn':
        return;
      default: {
        const asked = effects.ask(effect).then(feed, (error) => feed({ kind: 'failed', effect, error }));
        underWay.add(asked);
        void asked.finally(() => underWay.delete(asked));
      }
    }
  }
  return self;
}

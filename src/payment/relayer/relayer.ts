import { createHeads } from '../../chain/rpc/heads.ts';
import type { Config } from '../../config.ts';
import type { Log } from '../../lib/common.ts';
import { bytesToHex } from '../../lib/hex.ts';
import { allTried } from '../../lib/tasks.ts';
import type { RelayerSpendingStore } from '../../store/ports/stores.ts';
import type { Intent, Operation, OperationOutcome, Outcome, Relayer, Settler } from '../settler.ts';
import type { ChainCheck, TokenWatch } from '../usdc/checks.ts';
import { bannedPayers, isBanned } from '../usdc/payer-reads.ts';
import {
  createFees,
  createGasBudget,
  createGasWatch,
  type MinedCost,
  type RailCost,
  type RelayerMetrics,
} from './gas.ts';
import { hasStopped, step } from './machine.ts';
import { createEffects, type Effects, type EffectsOptions } from './requests.ts';
import { createState, type Effect, type Event, type Moment, type State, type StateOptions } from './state.ts';
import { type Job, newJob, newOperationJob, type OperationJob, type Wallet } from './transactions.ts';

// Our own settler: one key, one queue, one sequence of nonces. Sending twice wastes gas but moves money once.
// 1. Intents and operations become jobs. Each job, answer and head is one event for the machine (machine.ts).
// 2. The driver carries out the machine's effects concurrently (requests.ts) and feeds each answer back.
// 3. A job's promise has its outcome once the chain shows the end.

const BANNED = 'its payments cost gas and move nothing';

export interface RelayerOptions
  extends Omit<StateOptions, 'wallet'>,
    Omit<EffectsOptions, 'fees' | 'relayer' | 'signal'> {
  readonly wallet: Wallet;
  onHead(listener: () => void): () => void;
  /** Told each mined transaction's cost, whole and by rail. It must not throw. */
  onMined(cost: MinedCost, rails: readonly RailCost[]): void;
  readonly log: Pick<Log, 'warn'>;
  isCareful(): boolean;
  /** Age of an open job, in milliseconds, that stops further sales. */
  readonly stallMs: number;
}

/** Without heads, gas watch and gas budget. */
export interface BareRelayer extends Omit<Relayer, 'cannotSend' | 'refusesCode'>, Pick<Settler, 'stop'> {
  /** Of the open settlements and operations. */
  expectedWei(): bigint;
}

/** Sends waiting jobs in as few transactions as the gas allows. Reads outcomes in the logs of mined transactions. */
export function createRelayer(options: RelayerOptions): BareRelayer {
  const { chain, wallet, clock, stallMs } = options;
  const stopping = new AbortController();
  const { signal } = stopping;
  const fees = createFees(chain, clock, signal);
  const state = createState(options);
  const effects = createEffects({ ...options, fees, relayer: wallet.address, signal });
  const moment = (): Moment => ({ nowMs: clock.nowMs(), prices: fees.prices(), isCareful: options.isCareful() });
  const driver = createDriver(options, state, effects, moment);

  function isLate(): boolean {
    const [oldest] = state.open;
    return oldest !== undefined && clock.nowMs() - oldest.sinceMs > stallMs;
  }

  function expectedGas(): bigint {
    const { open, openCalls, openOperations, gas } = state;
    let expected = BigInt(open.size - openCalls) * gas.expected() + BigInt(openCalls) * gas.expectedCall();
    for (const { operation } of openOperations) expected += operation.gas;
    return expected;
  }

  return {
    settle: driver.submit,
    operate: driver.operate,
    unavailable: () => {
      if (state.stopping) return 'the service is stopping';
      return isLate() ? 'earlier settlements are late' : null;
    },
    refuses: (payer) => (isBanned(state.bans, bytesToHex(payer), clock.nowMs()) ? BANNED : null),
    refused: () => bannedPayers(state.bans, clock.nowMs()).map((payer) => [payer, BANNED]),
    expectedWei: () => expectedGas() * fees.prices().gasPrice,
    stop: () => driver.stop(() => stopping.abort()),
  };
}

interface OpenRelayerOptions extends Pick<RelayerOptions, 'chain' | 'wallet' | 'evidence' | 'noteBroadcast' | 'clock'> {
  readonly config: Pick<Config, 'network' | 'collector' | 'relayer' | 'receiptPollMs' | 'settleWaitMs'>;
  readonly token: TokenWatch;
  readonly check: ChainCheck;
  readonly spending: RelayerSpendingStore;
  readonly incomeToday: () => Promise<bigint>;
  readonly metrics?: RelayerMetrics | undefined;
  readonly log: Log;
}

export interface OpenRelayer extends Relayer, Required<Pick<Settler, 'load' | 'refresh' | 'detail' | 'stop'>> {}

/** Opens the relayer with its heads, gas watch and gas budget. It may be stopped more than once. */
export function openRelayer(options: OpenRelayerOptions): OpenRelayer {
  const { config, chain, wallet, token, metrics, clock, log } = options;
  const gas = createGasWatch(log, chain, wallet.address, metrics?.read);
  const budget = createGasBudget({ clock, log }, options.spending, config.relayer, options.incomeToday);
  metrics?.watchBudget(budget);
  const heads = createHeads(config.collector.wsUrls, log);
  const relayer = createRelayer({
    ...options,
    ...config.relayer,
    usdc: config.network.usdc,
    isCareful: () => budget.refusesCode() !== null,
    pollMs: config.receiptPollMs,
    stallMs: config.settleWaitMs,
    onHead: heads.listen,
    onMined: (cost, rails) => {
      budget.note(cost);
      metrics?.mined(cost, rails);
    },
  });
  const cannotSend = () => relayer.unavailable() ?? token.refusal() ?? gas.shortage(relayer.expectedWei());
  let stopped: Promise<void> | null = null;
  const stop = async (): Promise<void> => {
    await relayer.stop();
    heads.close();
  };
  return {
    ...relayer,
    unavailable: () => cannotSend() ?? budget.refusal(relayer.expectedWei()),
    cannotSend,
    refusesCode: budget.refusesCode,
    stop: () => {
      stopped ??= stop();
      return stopped;
    },
    load: budget.load,
    refresh: () => allTried([gas.refresh(relayer.expectedWei()), budget.refresh(relayer.expectedWei())]),
    detail: gas.detail,
  };
}

function createDriver({ onHead, onMined, log }: RelayerOptions, state: State, effects: Effects, moment: () => Moment) {
  const ends = createEnds<Job, Outcome>();
  const operationEnds = createEnds<OperationJob, OperationOutcome>();
  let stopListening = (): void => {};
  let whenStopped = (): void => {};

  function feed(event: Event): void {
    for (const effect of step(state, event, moment())) carryOut(effect);
    if (hasStopped(state)) whenStopped();
  }

  function carryOut(effect: Effect): void {
    switch (effect.kind) {
      case 'end':
        return void ends.end(effect.job, effect.outcome);
      case 'endOperation':
        return void operationEnds.end(effect.job, effect.outcome);
      case 'resendEverywhere':
        return void effects.resendEverywhere(effect.raws);
      case 'wake':
        return void effects.wake(effect.timer);
      case 'listen':
        stopListening = onHead(() => feed({ kind: 'head' }));
        return;
      case 'stopListening':
        return void stopListening();
      case 'report':
        return void onMined(effect.cost, effect.rails);
      case 'warn':
        return void log.warn(effect.detail, effect.message);
      default:
        effects.ask(effect).then(feed, (error) => feed({ kind: 'failed', effect, error }));
    }
  }

  return {
    submit(intents: readonly Intent[]): Promise<Outcome>[] {
      const jobs = intents.map((intent) => newJob(intent, moment().nowMs));
      const outcomes = jobs.map(ends.of);
      feed({ kind: 'submitted', jobs });
      return outcomes;
    },
    operate(operation: Operation): Promise<OperationOutcome> {
      const job = newOperationJob(operation, moment().nowMs);
      const outcome = operationEnds.of(job);
      feed({ kind: 'operated', job });
      return outcome;
    },
    /** Resolves once running work has ended, open jobs as unknown. `abort` cuts waits and requests short. */
    async stop(abort: () => void): Promise<void> {
      const { promise: stopped, resolve } = Promise.withResolvers<void>();
      whenStopped = resolve;
      feed({ kind: 'stopped' });
      abort();
      await stopped;
    },
  };
}

function createEnds<J, O>() {
  const ends = new Map<J, (outcome: O) => void>();

  return {
    of: (job: J): Promise<O> => new Promise((end) => void ends.set(job, end)),
    end(job: J, outcome: O): void {
      ends.get(job)?.(outcome);
      ends.delete(job);
    },
  };
}

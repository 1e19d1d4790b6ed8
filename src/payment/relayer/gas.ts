import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import { z } from 'zod';
import type { ChainClient } from '../../chain/rpc/client.ts';
import { parseAnswer, quantity, type RpcCall, type RpcOutcome, readOutcome } from '../../chain/rpc/wire.ts';
import type { Config } from '../../config.ts';
import { type Clock, DAY_MS, isoDate } from '../../lib/clock.ts';
import type { Common, Log } from '../../lib/common.ts';
import { shareRun } from '../../lib/tasks.ts';
import { formatNative } from '../../lib/units.ts';
import type { RelayerSpendingStore } from '../../store/ports/stores.ts';
import { CALL_GAS, LONE_CALL_GAS } from '../usdc/checks.ts';
import { SETTLE_GAS } from '../usdc/token.ts';

// What gas costs (fees), what a transaction may use (gas model), whether the relayer can pay (gas watch), and what a
// UTC day may cost (gas budget). Sales stop while the relayer is short or the budget is used up. Last, the metrics.

/** Milliseconds between two reads of fees. On Arc they move by at most 2 % per block. */
const MAX_AGE_MS = 2000;
/** Milliseconds. Twice the base fee covers 35 full blocks in a row on Arc, 17 s. For as long no round waits to read. */
const GOOD_MS = 15_000;
/** 0.1 gwei, enough to be mined at once. The base fee on Arc is 20 gwei, nearly all of the price. */
const PRIORITY_FEE_WEI = 100_000_000n;
/** Most times today's offer that a late transaction is offered. */
const CEILING = 4n;
/** Another provider is asked above this many times the last base fee. On Arc 35 full blocks in a row double it. */
const JUMP = 2n;

/** What a transaction offers per unit of gas, in wei. */
export interface Price {
  readonly maxFeePerGas: bigint;
  readonly maxPriorityFeePerGas: bigint;
}

export interface Prices {
  readonly blockGas: bigint;
  /** Per unit of gas, in wei; 0 before the first read. */
  readonly gasPrice: bigint;
  readonly offer: Price;
  /** Whether an offer covers the next block's base fee, which is at most 2 % higher. */
  covers(price: Price): boolean;
  /** A replacement's price: both fees a quarter up (nodes require a tenth), at least today's offer. Null: too much. */
  above(waiting: Price): Price | null;
}

/** The prices of a block with this base fee, in wei, and this gas limit. */
export function pricesAt(baseFee: bigint, blockGas: bigint): Prices {
  // What the maximum has above the base fee is not charged, but for the priority fee.
  const offer: Price = { maxFeePerGas: 2n * baseFee + PRIORITY_FEE_WEI, maxPriorityFeePerGas: PRIORITY_FEE_WEI };
  return {
    blockGas,
    offer,
    gasPrice: baseFee === 0n ? 0n : baseFee + PRIORITY_FEE_WEI,
    covers: ({ maxFeePerGas }) => maxFeePerGas * 50n >= baseFee * 51n,
    above: (waiting) => {
      const raised = {
        maxFeePerGas: most(offer.maxFeePerGas, (waiting.maxFeePerGas * 5n) / 4n),
        maxPriorityFeePerGas: most(offer.maxPriorityFeePerGas, (waiting.maxPriorityFeePerGas * 5n) / 4n),
      };
      return raised.maxFeePerGas > CEILING * offer.maxFeePerGas ? null : raised;
    },
  };
}

const newestBlock = z.object({ baseFeePerGas: quantity, gasLimit: quantity });

export function createFees(chain: ChainClient, clock: Clock, signal: AbortSignal) {
  let baseFee = 0n;
  let prices = pricesAt(baseFee, 0n);
  let atMs = Number.NEGATIVE_INFINITY;

  async function readFrom(turn: number): Promise<z.output<typeof newestBlock>> {
    const raw = await chain.request('eth_getBlockByNumber', ['latest', false], { signal, turn });
    return parseAnswer(newestBlock, raw, 'newest block');
  }

  /** A doubled base fee may stop sales by the day's budget. So another provider is asked, and the lower fee counts. */
  async function read(): Promise<void> {
    const block = await readFrom(0);
    const { baseFeePerGas: own, gasLimit } = block;
    const isSudden = chain.agreed.witnesses > 1 && own > JUMP * baseFee;
    const other = isSudden ? await readFrom(1).catch(() => block) : block;
    baseFee = least(other.baseFeePerGas, own);
    prices = pricesAt(baseFee, gasLimit);
    atMs = clock.nowMs();
  }

  const readShared = shareRun(read);
  async function refresh(): Promise<void> {
    if (clock.nowMs() - atMs <= MAX_AGE_MS) return;
    await readShared();
  }

  return {
    refresh,
    /** Waits for no read while the prices are younger than GOOD_MS; newer ones are then read in the background. */
    async ready(): Promise<void> {
      if (clock.nowMs() - atMs > GOOD_MS) return refresh();
      // The next call tries again.
      void refresh().catch(() => {});
    },
    prices: (): Prices => prices,
  };
}

export type Fees = ReturnType<typeof createFees>;

const most = (a: bigint, b: bigint): bigint => (a > b ? a : b);
const least = (a: bigint, b: bigint): bigint => (a < b ? a : b);

/** Gas of a batch without its payments: the transaction, the loop and its arrays. */
const BATCH_BASE = 60_000n;
/** Of a batch's transfer before the first batch. A lone one uses about 0.11M on Arc (facts of the live chain). */
const FIRST_GUESS = 150_000n;
const LEAST = 50_000n;
/** A batch uses four fifths of its limit, so two fit into a block if each limit is at most five ninths of it. */
const PAIR_NUMERATOR = 5n;
const PAIR_DENOMINATOR = 9n;
/** EIP-7825's limit for a transaction (since Osaka, whose rules Arc has). */
const MOST_GAS = 2n ** 24n;
/** A pool takes at most 128 KiB per transaction; a payment has 480 bytes. */
const MOST_PAYMENTS = 250;
/** However many batches fail, this many go together: smaller ones would cost more than a griefer wastes. */
const LEAST_TOGETHER = 8;

export interface Load {
  readonly transfers: number;
  readonly calls: number;
}

/** Gas limits, from what recent batches used. `sharePercent`: the part of a block for one transaction. */
export function createGasModel(sharePercent: number) {
  let each = FIRST_GUESS;
  // Lowered while batches fail: a gas griefer can waste its batch's whole gas limit.
  let together = Number.POSITIVE_INFINITY;

  const ceiling = (gas: bigint): bigint => (gas < MOST_GAS ? gas : MOST_GAS);

  function within(gas: bigint): number {
    const payments = Number((ceiling(gas) - BATCH_BASE) / each);
    return Math.min(MOST_PAYMENTS, Math.max(1, payments));
  }

  return {
    limit: ({ transfers, calls }: Load): bigint => {
      if (transfers + calls === 1) return calls === 1 ? LONE_CALL_GAS : SETTLE_GAS;
      return BATCH_BASE + BigInt(transfers) * each + BigInt(calls) * CALL_GAS;
    },
    /** The transfers of a batch that have a call's budget together. */
    callWeight: (): number => Number((CALL_GAS + each - 1n) / each),
    ceiling,
    expected: (): bigint => (each * 4n) / 5n,
    expectedCall: (): bigint => (CALL_GAS * 4n) / 5n,
    /** Most transfers of a transaction; a call weighs `callWeight`. If `waiting` need several, two fit into a block. */
    most(blockGas: bigint, waiting: number): number {
      const budget = (blockGas * BigInt(sharePercent)) / 100n;
      const pair = (blockGas * PAIR_NUMERATOR) / PAIR_DENOMINATOR;
      const one = within(budget);
      return Math.min(together, waiting <= one ? one : within(budget < pair ? budget : pair));
    },
    /** Learns from a wholly settled batch. One with calls tells nothing about a transfer's gas. */
    learn(gasUsed: bigint, { transfers, calls }: Load): void {
      together *= 2;
      if (calls > 0) return;
      const seen = (((gasUsed - 21_000n) / BigInt(transfers)) * 5n) / 4n;
      // Rises at once and falls slowly: a limit that is too high costs nothing.
      each = bounded(seen > each ? seen : (each * 7n + seen) / 8n);
    },
    /** Learns from a batch that used up its gas: a payer wasted it, or the budgets were too small. */
    failedBatch(payments: number): void {
      together = Math.max(LEAST_TOGETHER, Math.floor(Math.min(together, payments) / 2));
      each = bounded((each * 5n) / 4n);
    },
  };
}

export type GasModel = ReturnType<typeof createGasModel>;

function bounded(gas: bigint): bigint {
  if (gas < LEAST) return LEAST;
  return gas > SETTLE_GAS ? SETTLE_GAS : gas;
}

/** Settlements that the relayer must be able to pay for, at twice the gas price, which a transaction offers. */
const RESERVE_SETTLEMENTS = 10n;

export interface GasReading {
  readonly balanceWei: bigint;
  readonly gasPriceWei: bigint;
  /** Sales stop below this balance. */
  readonly neededWei: bigint;
  readonly relayer: `0x${string}`;
}

const slackOf = ({ balanceWei, neededWei }: GasReading): bigint => balanceWei - neededWei;

/** Logs each change between short and enough. It may name what the public detail may not. */
function createTelling(log: Log) {
  let wasShort = false;
  return (reading: GasReading, expectedWei: bigint): void => {
    const isShort = slackOf(reading) < 2n * expectedWei;
    if (isShort === wasShort) return;
    wasShort = isShort;
    const { relayer, balanceWei, neededWei } = reading;
    const balanceUsdc = formatNative(balanceWei);
    const detail = { relayer, balanceUsdc, neededUsdc: formatNative(neededWei + 2n * expectedWei) };
    if (isShort) log.warn(detail, 'the relayer is short of gas, and sales stop: send USDC to its address');
    else log.info(detail, 'the relayer has enough gas again');
  };
}

/** Watches the relayer's balance. A call that could not be settled is refused before its handler runs. */
export function createGasWatch(
  log: Log,
  chain: ChainClient,
  relayer: `0x${string}`,
  onReading?: (reading: GasReading) => void,
) {
  let latest: GasReading | null = null;
  const tell = createTelling(log);
  const questions: readonly RpcCall[] = [
    { method: 'eth_getBalance', params: [relayer, 'latest'] },
    { method: 'eth_gasPrice', params: [] },
  ];

  function readingOf([balance, price]: readonly RpcOutcome[]): GasReading {
    const balanceWei = readOutcome(balance, quantity, 'relayer’s balance');
    const gasPriceWei = readOutcome(price, quantity, 'gas price');
    return { balanceWei, gasPriceWei, neededWei: gasPriceWei * 2n * SETTLE_GAS * RESERVE_SETTLEMENTS, relayer };
  }

  /** The second lowest reading of all hosts, so that two must say that it is too little; a lone one's own. */
  async function secondLowest(first: GasReading): Promise<GasReading> {
    const heard = await chain.each(questions).catch(() => []);
    const readings = heard.flatMap((outcomes) => {
      try {
        return [readingOf(outcomes)];
      } catch {
        return [];
      }
    });
    const [lowest = first, second] = readings.sort((one, other) => (slackOf(one) < slackOf(other) ? -1 : 1));
    return second ?? lowest;
  }

  return {
    /** `expectedWei`: of open settlements. Two providers must show a shortage. Rejects, and keeps the last reading. */
    async refresh(expectedWei = 0n): Promise<void> {
      const first = readingOf(await chain.batch(questions));
      const isShort = slackOf(first) < 2n * expectedWei;
      latest = isShort && chain.agreed.witnesses > 1 ? await secondLowest(first) : first;
      onReading?.(latest);
      tell(latest, expectedWei);
    },
    /** Why nothing can be settled, or null, as before the first reading. */
    shortage: (expectedWei = 0n): string | null =>
      latest !== null && slackOf(latest) < 2n * expectedWei ? 'the relayer is short of gas' : null,
    /** Public; null before the first reading. Address and balance would tell what it costs to stop the sales. */
    detail: (): string | null => latest && `gas for ${RESERVE_SETTLEMENTS} settlements is kept in reserve`,
  };
}

/** The token counts in millionths of a USDC, the chain's gas in units of 18 decimals. */
const WEI_PER_UNIT = 10n ** 12n;

/**
 * Counts what gas costs in a UTC day, across restarts. Two budgets, neither a cap: what was sold is still settled.
 * Without the day's, nothing is sold. Without that for failures, accounts with code cannot buy: a contract can pass
 * every simulation and fail in the block at no cost, a plain account must send a transaction each time.
 * A budget that is null is no limit. `incomeToday`: what the relayer's payments brought in, in USDC base units.
 */
export function createGasBudget(
  { clock, log }: Common,
  store: RelayerSpendingStore,
  { dailyGas, dailyFailuresWei }: Pick<Config['relayer'], 'dailyGas' | 'dailyFailuresWei'>,
  incomeToday: () => Promise<bigint>,
) {
  let spent = { day: '', number: -1, wei: 0n, failedWei: 0n };

  /** This UTC day's cost; each member asks it, because the day may be new. */
  function today() {
    const nowMs = clock.nowMs();
    const number = Math.floor(nowMs / DAY_MS);
    if (number !== spent.number) spent = { day: isoDate(nowMs) ?? '', number, wei: 0n, failedWei: 0n };
    return spent;
  }

  const allowance = createAllowance(dailyGas, incomeToday, () => today().day);

  return {
    /** Loads what was spent today before this start. Await it before the first sale. */
    load: async (): Promise<void> => {
      const on = today();
      const { wei, failedWei } = await store.spentOn(on.day);
      [on.wei, on.failedWei] = [wei, failedWei];
      await allowance.refresh(wei);
    },
    /** Reads the day's income where it matters by now. Rejects when it cannot be read; the last one then stays. */
    refresh: (expectedWei: bigint): Promise<void> => allowance.refresh(today().wei + expectedWei),
    /** Counts a mined transaction. After a failed write the store misses this one alone. */
    note: ({ wei, failedWei, gasUsed, settled }: MinedCost): void => {
      const on = today();
      on.wei += wei;
      on.failedWei += failedWei;
      store
        .add(on.day, { wei, failedWei, gas: gasUsed, transactions: 1, payments: settled })
        .catch((error) => log.error({ err: error, wei: String(wei) }, 'the cost of a settlement was not stored'));
    },
    spentWei: (): bigint => today().wei,
    failedWei: (): bigint => today().failedWei,
    /** What this UTC day may cost, in wei, by the income that was read last. Null means no limit. */
    dailyWei: allowance.wei,
    dailyFailuresWei,
    refusesCode: (): string | null =>
      dailyFailuresWei !== null && today().failedWei >= dailyFailuresWei
        ? 'the day’s budget for settlements that fail is used up'
        : null,
    /** Why nothing more is sold today, or null. `expectedWei`: what the open settlements will cost. */
    refusal: (expectedWei: bigint): string | null => {
      const dailyWei = allowance.wei();
      return dailyWei !== null && today().wei + expectedWei >= dailyWei ? 'the day’s gas budget is used up' : null;
    },
  };
}

/** The ledger has the income, as other processes earn too. It is read once half of the allowance is spent. */
function createAllowance(
  daily: Config['relayer']['dailyGas'],
  incomeToday: () => Promise<bigint>,
  today: () => string,
) {
  let income = { day: '', wei: 0n };

  function wei(): bigint | null {
    if (daily === null) return null;
    return daily.wei + (income.day === today() ? income.wei : 0n);
  }

  return {
    wei,
    refresh: async (spentWei: bigint): Promise<void> => {
      if (!daily?.plusIncome || 2n * spentWei < (wei() ?? 0n)) return;
      const day = today();
      income = { day, wei: (await incomeToday()) * WEI_PER_UNIT };
    },
  };
}

type GasBudget = ReturnType<typeof createGasBudget>;

export interface MinedCost {
  readonly wei: bigint;
  readonly gasUsed: bigint;
  /** Paid per unit of gas, in wei. */
  readonly gasPrice: bigint;
  /** The payments in it, and those that it settled. 0 and 0 for an operation. */
  readonly payments: number;
  readonly settled: number;
  /** The part for payments that it did not settle, in wei. */
  readonly failedWei: bigint;
}

export interface RailCost {
  readonly rail: string;
  readonly wei: number;
  readonly gasUsed: number;
  /** The rail's payments that it settled. 0 for an operation. */
  readonly settled: number;
}

// --- The metrics: what the relayer holds, sends and pays, to compare a payment's cost with its price

const WEI_PER_USDC = 1e18;
const WEI_PER_GWEI = 1e9;
/** One transaction settles at most 250 payments (gas.ts). */
const BATCH_BOUNDS = [1, 2, 4, 8, 16, 32, 64, 128, 256];
/** A lone payment on Arc uses about 112,519 gas, and less in a batch. The limit is 300,000. */
const GAS_BOUNDS = [
  40_000, 50_000, 60_000, 70_000, 80_000, 90_000, 100_000, 115_000, 130_000, 150_000, 200_000, 300_000,
];
/** USDC. The cheapest call costs 0.0005; a lone settlement at 20 gwei costs 0.0023. */
const COST_BOUNDS = [0.0005, 0.001, 0.0015, 0.002, 0.0025, 0.003, 0.005, 0.01, 0.05];

const SPENT = 'relayer_gas_spent_today_usdc';
const LIMIT = 'relayer_gas_budget_usdc';
const FAILED = 'relayer_gas_failed_today_usdc';
const FAILED_LIMIT = 'relayer_gas_failed_budget_usdc';

function createCosts(registry: Registry) {
  const registers = [registry];
  const settled = new Counter({
    name: 'relayer_payments_total',
    help: 'Payments that they settled',
    labelNames: ['rail'],
    registers,
  });
  const cost = new Counter({
    name: 'relayer_cost_usdc_total',
    help: 'USDC that they cost in gas',
    labelNames: ['rail'],
    registers,
  });
  const gasEach = new Histogram({
    name: 'relayer_gas_per_payment',
    help: 'Gas of a mined transaction for each payment that it settled; one sample a payment',
    buckets: GAS_BOUNDS,
    registers,
  });
  const costEach = new Histogram({
    name: 'relayer_cost_per_payment_usdc',
    help: 'The same in USDC, by the rail of the payment',
    labelNames: ['rail'],
    buckets: COST_BOUNDS,
    registers,
  });

  return {
    /** Publishes a rail's counters before its first transaction: a counter without a sample has no rate. */
    watchRail(rail: string): void {
      settled.inc({ rail }, 0);
      cost.inc({ rail }, 0);
    },
    add({ rail, wei, gasUsed, settled: count }: RailCost): void {
      const usdc = wei / WEI_PER_USDC;
      settled.inc({ rail }, count);
      cost.inc({ rail }, usdc);
      for (let payment = 0; payment < count; payment++) {
        gasEach.observe(gasUsed / count);
        costEach.observe({ rail }, usdc / count);
      }
    },
  };
}

/** What the relayer holds and needs, and its address. Pages and `/readyz` show neither to third parties. */
function createGasGauges(registers: Registry[]) {
  const balance = new Gauge({
    name: 'relayer_balance_usdc',
    help: 'Native USDC that the relayer holds for gas',
    registers,
  });
  const needed = new Gauge({
    name: 'relayer_needed_usdc',
    help: 'Sales stop while the relayer holds less than this',
    registers,
  });
  const info = new Gauge({
    name: 'relayer_info',
    help: 'The relayer’s address, which needs funds',
    labelNames: ['address'],
    registers,
  });
  const price = new Gauge({
    name: 'relayer_gas_price_gwei',
    help: 'What a node asks for gas, at the last reading',
    registers,
  });
  // Before its first reading a gauge would say 0, also where another instance leads or a facilitator settles.
  for (const gauge of [balance, needed, price]) gauge.remove();
  return ({ balanceWei, gasPriceWei, neededWei, relayer }: GasReading): void => {
    balance.set(Number(balanceWei) / WEI_PER_USDC);
    needed.set(Number(neededWei) / WEI_PER_USDC);
    info.set({ address: relayer }, 1);
    price.set(Number(gasPriceWei) / WEI_PER_GWEI);
  };
}

export function createRelayerMetrics(registry: Registry) {
  const registers = [registry];
  const gas = createGasGauges(registers);
  const transactions = new Counter({
    name: 'relayer_transactions_total',
    help: 'Mined transactions of the relayer',
    registers,
  });
  const costs = createCosts(registry);
  const batch = new Histogram({
    name: 'relayer_batch_payments',
    help: 'Payments in a mined transaction',
    buckets: BATCH_BOUNDS,
    registers,
  });
  function publishWei(name: string, help: string, readWei: () => bigint | null): void {
    if (readWei() === null) return;
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(Number(readWei() ?? 0n) / WEI_PER_USDC);
      },
    });
  }

  return {
    watchRail: costs.watchRail,
    /** Publishes a figure that is read at each scrape. Null and a failed read give no sample. */
    publish: (name: string, help: string, read: () => Promise<number | null>) =>
      publishRead(registry, name, help, read),
    mined({ payments }: Pick<MinedCost, 'payments'>, rails: readonly RailCost[]): void {
      transactions.inc();
      if (payments > 0) batch.observe(payments);
      for (const one of rails) costs.add(one);
    },
    read: gas,
    /** Publishes what of the day's budget is spent. Without a budget the limit has no sample. */
    watchBudget(budget: Pick<GasBudget, 'spentWei' | 'dailyWei' | 'failedWei' | 'dailyFailuresWei'>): void {
      // An instance that leads again has a new budget.
      for (const name of [SPENT, LIMIT, FAILED, FAILED_LIMIT]) registry.removeSingleMetric(name);
      publishWei(SPENT, 'USDC spent on gas in this UTC day, over restarts', budget.spentWei);
      publishWei(FAILED, 'Its part for transactions that settled nothing', budget.failedWei);
      publishWei(LIMIT, 'What it may spend in a day (RELAYER_DAILY_GAS_USDC), its income included', budget.dailyWei);
      publishWei(FAILED_LIMIT, 'The same for failures (RELAYER_DAILY_FAILURES_USDC)', () => budget.dailyFailuresWei);
    },
  };
}

function publishRead(registry: Registry, name: string, help: string, read: () => Promise<number | null>): void {
  // An instance that leads again publishes it anew.
  registry.removeSingleMetric(name);
  new Gauge({
    name,
    help,
    registers: [registry],
    async collect() {
      const value = await read().catch(() => null);
      this.remove();
      if (value !== null) this.set(value);
    },
  });
}

export type RelayerMetrics = ReturnType<typeof createRelayerMetrics>;

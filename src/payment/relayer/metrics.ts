import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { GasBudget, GasReading, MinedCost, RailCost } from './gas.ts';

// What our relayer holds, sends and pays, so that the cost of a payment can be compared with its price.

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

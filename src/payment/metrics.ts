import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { Clock } from '../lib/clock.ts';
import { boundedMap } from '../lib/limits/count.ts';
import type { Claim, LightningStore, NewClaim, ProofKey } from '../store/ports/lightning.ts';
import type { LedgerStore, Payment, PaymentState } from '../store/ports/payments.ts';
import type { Call, Sold } from './call.ts';
import type { OnMove } from './ledger.ts';
import type { Credential } from './protocol.ts';

// Figures of payments for Prometheus: the ledger's moves and the Lightning rail's, counted as they happen; open
// payments and kept bytes, read at each scrape. A failed read publishes no sample, not a zero, and fails no payment.

interface PaymentMetricsOptions {
  readonly store: Pick<LedgerStore, 'get' | 'listByState' | 'replyBytes' | 'ping'>;
  readonly clock: Clock;
  /** Each has a counter from the start. */
  readonly rails: readonly string[];
  /** Null for a rail that is not known. */
  readonly railOf: (contract: Uint8Array) => string | null;
  readonly storeBytes: number;
}

const OPEN: readonly PaymentState[] = ['reserved', 'settling', 'unknown'];
/** A higher count would raise the same alarm. */
const MAX_COUNTED = 1000;
const USDC_UNIT = 1_000_000;
/** Seconds. A settlement is mined in the next half-second block or is late; `SETTLE_WAIT_MS` is 20 s. */
const SETTLEMENT_BOUNDS = [0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 20, 60, 300];
/** Seconds. A voucher is sold in milliseconds; a plain payment waits for its settlement. */
const ANSWER_BOUNDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 20];

/** All are published at start, because a rate cannot be computed for a counter that does not exist yet. */
const MOVES: readonly { rail: string; state: string }[] = [
  ...['reserved', 'released', 'settling', 'unknown', 'settled', 'failed'].map((state) => ({ rail: 'usdc', state })),
  ...['offered', 'claimed', 'delivered'].map((state) => ({ rail: 'lightning', state })),
  { rail: 'facilitator', state: 'claimed' },
];

export function createPaymentMetrics(
  registry: Registry,
  { store, clock, storeBytes, rails, railOf }: PaymentMetricsOptions,
) {
  const registers = [registry];
  const moves = new Counter({
    name: 'payment_moves_total',
    help: 'Payments that came into a state',
    labelNames: ['rail', 'state'],
    registers,
  });
  for (const labels of MOVES) moves.inc(labels, 0);
  const { countSale, protocols } = createSales(registry, { store, rails, railOf });
  const claimedMsat = new Counter({
    name: 'payment_claimed_msat_total',
    help: 'Millisatoshis of claims through our own routes',
    registers,
  });
  const duration = new Histogram({
    name: 'payment_settlement_duration_seconds',
    help: 'Time from the stored reply to the written end, of settlements that began in this process',
    labelNames: ['outcome'],
    buckets: SETTLEMENT_BOUNDS,
    registers,
  });
  const writable = '1 while the ledger can be read and written, as `ledger` in /readyz; else 0';
  const writes = () => store.ping().then(() => 1);
  publishRead(registry, 'ledger_writable', writable, () => writes().catch(() => 0));
  publishOpen(registry, store);
  publishReplies(registry, store, storeBytes);
  // In Unix milliseconds, for settlements of this process.
  const since = new Map<string, number>();

  const onMove: OnMove = (id, state, sale) => {
    moves.inc({ rail: 'usdc', state });
    if (state === 'settling') since.set(id, clock.nowMs());
    if (state !== 'settled' && state !== 'failed') return;
    measure(id, state);
    if (state === 'settled') void countSale(id, sale);
  };

  function measure(id: string, state: PaymentState | null): void {
    const began = since.get(id);
    since.delete(id);
    const hasEnded = state === 'settled' || state === 'failed';
    if (hasEnded && began !== undefined) duration.observe({ outcome: state }, (clock.nowMs() - began) / 1000);
  }

  return {
    onMove,
    /** For a settlement that another process ends, once no call here waits for it. */
    onLeft: measure,
    timed: createTiming(registry, clock),
    watchClaims: (claims: LightningStore): LightningStore => {
      const name = 'payment_lightning_reply_bytes';
      publishRead(registry, name, 'Bytes of replies and answers kept for Lightning payments', () => claims.bodyBytes());
      return watchClaims(claims, { moves, claimedMsat, protocols, contested: createContested(registry, claims) });
    },
  };
}

function createSales(
  registry: Registry,
  { store, rails, railOf }: Pick<PaymentMetricsOptions, 'store' | 'rails' | 'railOf'>,
) {
  const registers = [registry];
  const settledUsdc = new Counter({
    name: 'payment_settled_usdc_total',
    help: 'USDC that settled since the start',
    registers,
  });
  const sales = new Counter({
    name: 'payment_settled_total',
    help: 'Calls that were paid in USDC, by rail',
    labelNames: ['rail'],
    registers,
  });
  const income = new Counter({
    name: 'payment_income_usdc_total',
    help: 'USDC that calls brought, by rail',
    labelNames: ['rail'],
    registers,
  });
  for (const rail of rails) {
    sales.inc({ rail }, 0);
    income.inc({ rail }, 0);
  }
  const protocols = createProtocolCounter(registry);
  const countSale = async (id: string, sale?: Payment): Promise<void> => {
    // The ledger passes the row of a voucher's sale: reading it again would cost more than counting it.
    const payment = sale ?? (await store.get(id).catch(() => null));
    if (!payment) return;
    const rail = railOf(payment.contract) ?? 'other';
    sales.inc({ rail });
    protocols.inc({ protocol: payment.protocol ?? 'x402' });
    // The rest of a deposit into a channel stays the payer's.
    const earned = Number(payment.channel ? payment.charged : payment.amount) / USDC_UNIT;
    settledUsdc.inc(earned);
    income.inc({ rail }, earned);
  };
  return { countSale, protocols };
}

function createProtocolCounter(registry: Registry): Counter<'protocol'> {
  const counter = new Counter({
    name: 'payment_protocol_total',
    help: 'Calls that were paid, by the protocol that presented the payment',
    labelNames: ['protocol'],
    registers: [registry],
  });
  for (const protocol of ['x402', 'l402', 'mpp']) counter.inc({ protocol }, 0);
  return counter;
}

interface ClaimCounters {
  readonly moves: Counter<'rail' | 'state'>;
  readonly claimedMsat: Counter;
  readonly protocols: Counter<'protocol'>;
  readonly contested: ReturnType<typeof createContested>;
}

/** Hashes that are remembered, so that each is counted once. */
const MAX_CONTESTED = 10_000;

// Counts hashes that two payees claimed: a routing node knows the preimage first, and can sign an invoice over it. Ours
// are counted apart, because anyone with two keys can contest a hash of their own at the facilitator for nothing.
function createContested(registry: Registry, claims: LightningStore) {
  const counter = new Counter({
    name: 'lightning_contested_hashes_total',
    help:
      'Payment hashes that two payees claimed: paid to our node, ' +
      'or claimed by others through the facilitator alone',
    labelNames: ['payee'],
    registers: [registry],
  });
  for (const payee of ['ours', 'others'] as const) counter.inc({ payee }, 0);
  const counted = boundedMap<string, true>(MAX_CONTESTED);
  return {
    before: (key: ProofKey): Promise<Claim | null> => claims.findClaim(key).catch(() => null),
    note({ payTo, paymentHash, grant }: NewClaim, other: Claim | null): void {
      const hash = Buffer.from(paymentHash).toString('hex');
      if (!other || Buffer.compare(other.payTo, payTo) === 0 || counted.has(hash)) return;
      counted.set(hash, true);
      counter.inc({ payee: grant || other.grant ? 'ours' : 'others' });
    },
  };
}

function watchClaims(
  claims: LightningStore,
  { moves, claimedMsat, protocols, contested }: ClaimCounters,
): LightningStore {
  return {
    ...claims,
    recordInvoice: async (record, sealedReply) => {
      await claims.recordInvoice(record, sealedReply);
      moves.inc({ rail: 'lightning', state: 'offered' });
    },
    claim: async (claim) => {
      // A claim of ours replaces one for another payee, so that one is read before. The facilitator's replaces none.
      const replaced = claim.grant && (await contested.before(claim));
      const outcome = await claims.claim(claim);
      if (outcome === 'claimed') contested.note(claim, replaced);
      if (outcome === 'duplicate') contested.note(claim, await contested.before(claim));
      if (outcome !== 'claimed') return outcome;
      moves.inc({ rail: claim.grant ? 'lightning' : 'facilitator', state: 'claimed' });
      if (claim.grant) {
        claimedMsat.inc(Number(claim.amountMsat));
        protocols.inc({ protocol: claim.grant.protocol });
      }
      return outcome;
    },
    delivered: async (key, now, keepUntil) => {
      const first = await claims.delivered(key, now, keepUntil);
      if (first) moves.inc({ rail: 'lightning', state: 'delivered' });
      return first;
    },
  };
}

/** A rail's sales, each paid answer counted and timed, over routes and tools. */
export type TimeSales = <C extends Pick<Call, 'route'>>(rail: string, sell: Sell<C>) => Sell<C>;
type Sell<C> = (call: C, credential: Credential) => Promise<Sold>;

function createTiming(registry: Registry, clock: Clock): TimeSales {
  const answers = new Counter({
    name: 'payment_answers_total',
    help: 'Answers to presented payments by rail and route; one that is fetched again counts again, a refund once',
    labelNames: ['rail', 'route'],
    registers: [registry],
  });
  const duration = new Histogram({
    name: 'payment_answer_duration_seconds',
    help: 'Time from the presented payment to the paid answer, by rail',
    labelNames: ['rail'],
    buckets: ANSWER_BOUNDS,
    registers: [registry],
  });
  return (rail, sell) => {
    duration.zero({ rail });
    return async (call, credential) => {
      const began = clock.nowMs();
      const sold = await sell(call, credential);
      answers.inc({ rail, route: call.route });
      duration.observe({ rail }, (clock.nowMs() - began) / 1000);
      return sold;
    };
  };
}

/** Counts each presented payment that got no answer: by surface, and by its name (`refusalName`). */
export function countRefusals(registry: Registry): (surface: string, reason: string) => void {
  const counter = new Counter({
    name: 'payment_refusals_total',
    help: 'Presented payments that got no answer, by the reason or the code that they got',
    labelNames: ['surface', 'reason'],
    registers: [registry],
  });
  return (surface, reason) => counter.inc({ surface, reason });
}

export function publishMaintenance(registry: Registry, failing: () => Readonly<Record<string, boolean>>): void {
  new Gauge({
    name: 'payment_maintenance_failing',
    help: '1 while the last round of this kind has failed, else 0',
    labelNames: ['round'],
    registers: [registry],
    collect() {
      for (const [round, fails] of Object.entries(failing())) this.set({ round }, fails ? 1 : 0);
    },
  });
}

function publishOpen(registry: Registry, store: PaymentMetricsOptions['store']): void {
  new Gauge({
    name: 'payments_open',
    help: `USDC payments that have not ended, by state; at most the ${MAX_COUNTED} oldest are counted`,
    labelNames: ['state'],
    registers: [registry],
    async collect() {
      const open = await store.listByState(OPEN, MAX_COUNTED).catch(() => null);
      this.reset();
      if (open === null) return;
      for (const state of OPEN) this.set({ state }, open.filter((payment) => payment.state === state).length);
    },
  });
  const help = 'When the oldest USDC payment that has not ended was reserved; no sample while nothing is open';
  publishRead(registry, 'payment_oldest_open_timestamp_seconds', help, async () => {
    const [oldest] = await store.listByState(OPEN, 1);
    return oldest ? oldest.reservedAt / 1000 : null;
  });
}

function publishReplies(registry: Registry, store: PaymentMetricsOptions['store'], storeBytes: number): void {
  publishRead(registry, 'payment_reply_bytes', 'Bytes of replies kept for USDC payments', () => store.replyBytes());
  const help = 'What each rail may keep of them (REPLY_STORE_MB)';
  new Gauge({ name: 'payment_reply_bytes_limit', help, registers: [registry] }).set(storeBytes);
}

function publishRead(registry: Registry, name: string, help: string, read: () => Promise<number | null>): void {
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

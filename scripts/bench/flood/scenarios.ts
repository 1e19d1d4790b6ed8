import type { FloodKind } from './load-worker.ts';

/** What the honest buyer buys, and how it pays. */
export interface Line {
  /** As the table names it. */
  readonly name: string;
  readonly path: string;
  readonly pays: 'plain' | 'gateway' | 'lightning';
  /** Between two calls. */
  readonly everyMs: number;
}

/** How many clients present what, each so often. */
export interface Flood {
  readonly kind: FloodKind;
  readonly clients: number;
  readonly perSecondEach: number;
  /** Where it presents; the honest buyer's route by default. Offers are asked for below it. */
  readonly path?: string;
}

/** One flood and the service that it meets; the service is as by default beside what is named. */
export interface Scenario {
  readonly name: string;
  /** Null: nothing but the honest buyer. */
  readonly flood: Flood | null;
  readonly settler: 'relayer' | 'facilitator';
  readonly gateway: boolean;
  readonly lightning: boolean;
  readonly lines: readonly Line[];
}

const SECOND_MS = 1000;
/** An account as good as any other. */
const WALLET = `/chain/wallet?address=0x${'5e'.repeat(20)}`;
const usdc = { pays: 'plain', everyMs: SECOND_MS } as const;
const sats = { pays: 'lightning', everyMs: 3 * SECOND_MS } as const;
/** One that reads what was collected, one that reads the chain live. */
const PLAIN: readonly Line[] = [
  { name: 'rpc/health', path: '/v1/paid/rpc/health', ...usdc },
  { name: 'chain/wallet', path: `/v1/paid${WALLET}`, ...usdc },
];
const DEPOSITS: readonly Line[] = [
  { name: 'Gateway', path: '/v1/paid/rpc/health', pays: 'gateway', everyMs: SECOND_MS },
  { name: 'plain', path: '/v1/paid/rpc/health', ...usdc },
];
const OFFERS: readonly Line[] = [
  { name: 'rpc/health', path: '/v1/lightning/rpc/health', ...sats },
  { name: 'chain/wallet', path: `/v1/lightning${WALLET}`, ...sats },
];
const relayed = { settler: 'relayer', gateway: false, lightning: false, lines: PLAIN } as const;
const remote = { ...relayed, settler: 'facilitator' } as const;
const deposited = { ...relayed, gateway: true, lines: DEPOSITS } as const;
const offered = { ...relayed, lightning: true, lines: OFFERS } as const;

/** A flood of payments at the honest buyer's own route. */
function flood(kind: FloodKind, clients: number, perSecondEach: number): Flood {
  return { kind, clients, perSecondEach };
}

/** Every scenario of the bench. Those without a flood come first. */
export const SCENARIOS: readonly Scenario[] = [
  { name: 'none', flood: null, ...relayed },
  { name: 'none-facilitator', flood: null, ...remote },
  { name: 'none-gateway', flood: null, ...deposited },
  { name: 'none-offers', flood: null, ...offered },
  { name: 'junk-1', flood: flood('junk', 1, 10), ...relayed },
  { name: 'junk-40', flood: flood('junk', 40, 10), ...relayed },
  { name: 'junk-400', flood: flood('junk', 400, 1), ...relayed },
  { name: 'empty-4', flood: flood('empty', 4, 10), ...relayed },
  { name: 'empty-400', flood: flood('empty', 400, 1), ...relayed },
  { name: 'contracts-slow', flood: flood('contracts', 20, 0.05), ...relayed },
  { name: 'contracts-fast', flood: flood('contracts', 20, 1), ...relayed },
  { name: 'facilitator-slow', flood: flood('contracts', 20, 0.05), ...remote },
  { name: 'facilitator-fast', flood: flood('contracts', 20, 1), ...remote },
  // What they ask for reads the chain: without a look at the deposit first, each would drive that work.
  { name: 'gateway-keys', flood: { ...flood('gateway', 40, 1), path: `/v1/paid${WALLET}` }, ...deposited },
  { name: 'offers-20', flood: { ...flood('offers', 20, 10), path: '/v1/lightning' }, ...offered },
  { name: 'offers-400', flood: { ...flood('offers', 400, 1), path: '/v1/lightning' }, ...offered },
];

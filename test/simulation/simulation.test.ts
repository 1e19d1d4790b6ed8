import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, test } from 'vitest';
import { type Played, playInParallel, playSeeds, tellBreach } from './lane/play-seeds.ts';

/** The lane for every change, and a longer one with SLOW; `npm run simulate` is the longest. */
const SEEDS = Array.from({ length: process.env.SLOW ? 300 : 4 }, (_, at) => at + 1);
const MOVES = 200;
/** A process plays its first seeds at twice the price. So few seeds are cheaper in one. */
const PROCESSES = process.env.SLOW ? 2 : 1;
/** Some of the seeds once more, in another order. */
const AGAIN = SEEDS.slice(0, process.env.SLOW ? 6 : 2).reverse();
const REPLAYED = fileURLToPath(new URL('replayed/', import.meta.url));
const files = readdirSync(REPLAYED).filter((name) => name.endsWith('.json'));
const MOST_MS = 600_000;

/** What has to happen somewhere in the lane: a world in which it never does shows nothing of it. */
const MUST_HAPPEN = [
  ...['relayer: mined', 'relayer: reverted', 'chain: canceled', 'chain: spent elsewhere'],
  ...[
    'chain: paid by a third party',
    'chain: paid by a facilitator',
    'gateway: taken for us',
    'gateway: taken from the payer',
  ],
  ...['lightning: paid', 'lightning: of another tenant', 'lightning: claimed through the facilitator'],
  ...[
    'answer: usdc 200',
    'answer: usdc tool 200',
    'answer: gateway 200',
    'answer: lightning 200',
    'answer: lightning tool 200',
  ],
  ...['answer: usdc 409 payment_in_flight', 'answer: usdc 429 payer_refused', 'answer: usdc 429 payer_failures'],
  ...['answer: usdc 503 chain_busy', 'answer: usdc 503 settlement_unknown', 'answer: usdc 503 ledger_unavailable'],
  ...['answer: usdc 503 settlement_unavailable', 'answer: gateway 503 settlement_unknown', 'answer: usdc abandoned'],
  ...[
    'answer: usdc reset',
    'answer: lightning 402 exact_lnbtc_payment_not_paid',
    'answer: lightning 402 duplicate_settlement',
  ],
  ...[
    'kill',
    'stop',
    'sleep',
    'leap',
    'drop pending',
    'stall',
    'fee',
    'relayer gas',
    'moody',
    'price',
    'batch',
    'forge',
    'program',
    'shed code',
    'hand over',
    'move balance',
    'race, nothing',
    'token, paused',
    'token, seller blocked',
  ].map((name) => `move: ${name}`),
  ...[
    'open channel',
    'voucher',
    'top up',
    'refund',
    'withdraw',
    'finalize',
    'third party deposits',
    'copy operation',
  ].map((name) => `move: ${name}`),
  ...['deposited', 'claimed', 'refunded', 'withdrawn', 'claimed by a third party'].map((name) => `channels: ${name}`),
  'move: poison',
  ...[
    'moves the balance',
    'grows code',
    'turns the wallet',
    'cancels',
    'spends elsewhere',
    'is sent by a third party',
    'is sent past its channel',
  ].map((trap) => `move: trap, ${trap}`),
  'honest: judged',
  'answer: channels 200',
  'answer: channels 402 invalid_batch_settlement_evm_cumulative_amount_mismatch',
  'answer: channels 402 invalid_batch_settlement_evm_cumulative_exceeds_balance',
  'answer: channels 429 refund_too_soon',
  ...['full', 'read-only'].map((how) => `move: disk, ${how}`),
  ...['away', 'silent', 'lost', 'slow'].map((how) => `move: ledger, ${how}`),
  ...['fault', 'lag', 'perSecond', 'wrongChain', 'hoards', 'hidesReceipts', 'refusesCreation'].map(
    (mood) => `move: provider, ${mood}`,
  ),
  ...['fault', 'slowMs', 'lies'].map((mood) => `move: facilitator, ${mood}`),
  ...['fault', 'readFault', 'lateMs'].map((mood) => `move: gateway, ${mood}`),
  ...['bad signatures', 'empty accounts', 'garbage', 'unpaid offers'].map((kind) => `move: flood, ${kind}`),
];

describe('a simulated world', () => {
  let reported: Played[] = [];
  let replayed: Played[] = [];
  let again: Played[] = [];
  beforeAll(async () => {
    // The second process plays the kept moves too: a process of their own would have to load and compile the service for them.
    const replay = files.map((name) => `${REPLAYED}${name}`);
    const [lane, other] = await Promise.all([
      playInParallel({ seeds: SEEDS, moves: MOVES }, PROCESSES),
      playSeeds({ replay, seeds: AGAIN, moves: MOVES }),
    ]);
    reported = lane;
    replayed = other.slice(0, files.length);
    again = other.slice(files.length);
  }, MOST_MS);

  test(
    `keeps every promise over ${SEEDS.length} seeds of ${MOVES} moves`,
    async () => {
      expect(reported).toHaveLength(SEEDS.length);
      const [first, ...others] = reported.filter(({ breach }) => breach !== null);
      const shortened = first ? await playSeeds({ seeds: [Number(first.seed)], moves: MOVES, shorten: true }) : [];
      expect([...shortened, ...others].map(tellBreach)).toEqual([]);
    },
    MOST_MS,
  );

  test.runIf(process.env.SLOW)('lets everything happen that it can', () => {
    const sums = new Map<string, number>();
    for (const { figures } of reported)
      for (const [name, count] of Object.entries(figures)) sums.set(name, (sums.get(name) ?? 0) + count);
    expect(MUST_HAPPEN.filter((name) => (sums.get(name) ?? 0) === 0)).toEqual([]);
  });

  test('runs the same for the same seed, in another process and in another order', () => {
    const traces = (outcomes: readonly Played[]) => new Map(outcomes.map(({ seed, digest }) => [seed, digest]));
    const before = traces(reported);
    expect(again).toHaveLength(AGAIN.length);
    for (const [seed, digest] of traces(again)) expect(`${seed} ${digest}`).toBe(`${seed} ${before.get(seed)}`);
  });

  describe('the shortened moves of a seed that once broke a promise', () => {
    test('are those that were kept', () => {
      expect(files).toEqual([
        'cancelled-after-a-refusal.json',
        'deposit-of-another-client.json',
        'refund-that-ends-during-another.json',
      ]);
      expect(replayed).toHaveLength(files.length);
    });

    test.each(files.map((name, at) => [name, at] as const))('break none any more: %s', (_name, at) => {
      const [one] = replayed.slice(at, at + 1);
      expect(one && tellBreach(one)).toBe('');
      expect(one?.played).toBeGreaterThan(0);
    });
  });
});

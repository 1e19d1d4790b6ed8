import { describe, expect, test } from 'vitest';
import { bytesToHex } from '../../../../../src/lib/hex.ts';
import type { Authorization, Found, Intent, Outcome } from '../../../../../src/payment/settler.ts';
import type { SettleReply, SettleRequest } from '../../../../../src/payment/usdc/facilitator.ts';
import { createRemoteSettler } from '../../../../../src/payment/usdc/facilitator-settler.ts';
import { createManualClock } from '../../../../support/manual-clock.ts';
import { quiet } from '../../../../support/quiet.ts';
import { USDC } from '../../../../support/usdc/payments.ts';
import { randomIntent } from '../../../../support/usdc/token-node.ts';

const NETWORK = 'eip155:5042';
const UNKNOWN: Outcome = { kind: 'unknown' };
const REVERTED: Outcome = { kind: 'failed', reason: 'invalid_exact_evm_transaction_failed' };
const USED_BEFORE: Outcome = { kind: 'failed', reason: 'payment_already_used' };
const SETTLED: Outcome = { kind: 'settled', transaction: Buffer.alloc(32, 1), block: 7, paid: 1000n };
const terms = { network: NETWORK, usdc: USDC, extra: {}, publicOrigin: 'https://a.test' } as const;

interface Given {
  readonly reply?: SettleReply;
  /** In the order of the looks; the last stays. */
  readonly verdicts?: readonly (Found | Error)[];
  readonly usedBefore?: ((intent: Intent) => Promise<string | null>) | null;
  readonly isUsed?: (authorization: Authorization) => Promise<boolean>;
  /** Whether code stands at the payer's address now. */
  readonly hasCode?: () => Promise<boolean>;
  readonly isNoted?: boolean;
  readonly watchMs?: number;
  /** What the transaction shows that the facilitator names. */
  readonly named?: (transaction: string) => Promise<Outcome | null>;
}

/** A settler over a facilitator and an evidence that say what the test says; time passes by itself. */
function openSettler({ reply = { kind: 'accepted', transaction: '' }, isNoted = true, ...given }: Given = {}) {
  const { watchMs = 5000 } = given;
  const clock = createManualClock(1_800_000_000_000);
  const quick = { ...clock, sleep: (ms: number) => clock.advance(ms) };
  const events: string[] = [];
  const requests: SettleRequest[] = [];
  const looks: number[] = [];
  const ranks: (string | undefined)[] = [];
  const reported: object[] = [];
  const [last = { kind: 'open' } as const, ...before] = [...(given.verdicts ?? [])].reverse();
  const verdicts = before.reverse();
  const { named } = given;
  const report = (detail: object) => void reported.push(detail);
  const log = { ...quiet, info: report, warn: report };
  const settler = createRemoteSettler(
    { clock: quick, log },
    {
      isUsed: given.isUsed ?? null,
      hasCode: given.hasCode ?? null,
      client: {
        settle: async (request) => {
          events.push('handed over');
          requests.push(request);
          return reply;
        },
      },
      evidence: {
        ...(named && { paidIn: (_, transaction) => named(transaction) }),
        lookup: async (_authorization, _fromBlock, { rank } = {}) => {
          ranks.push(rank);
          looks.push(clock.nowMs() - 1_800_000_000_000);
          const verdict = verdicts.shift() ?? last;
          if (verdict instanceof Error) throw verdict;
          return verdict;
        },
      },
      terms,
      usedBefore: given.usedBefore ?? null,
      noteBroadcast: async (entries) => {
        events.push('noted');
        return new Set(isNoted ? entries.map(({ id }) => id) : []);
      },
      onUnsettled: () => events.push('unsettled'),
      pollMs: 100,
      watchMs,
      stallMs: 1e9,
    },
  );
  const settle = async (intent: Intent): Promise<Outcome | undefined> =>
    (await Promise.all(settler.settle([intent])))[0];
  const refused = ({ authorization: { from } }: Intent) => settler.refuses?.(from) ?? null;
  return { settler, settle, events, requests, looks, ranks, reported, refused };
}

const TRANSPORT: SettleReply = { kind: 'unclear', detail: 'HTTP 500', isTransport: true };
const ANSWERED: SettleReply = { kind: 'unclear', detail: 'unexpected_settle_error', isTransport: false };

describe('the transaction that a facilitator names', () => {
  const NAME = `0x${'ab'.repeat(32)}`;
  const reply: SettleReply = { kind: 'accepted', transaction: NAME };

  test('settles the payment that it shows, with one request and no search', async () => {
    const asked: string[] = [];
    const named = async (transaction: string) => {
      asked.push(transaction);
      return SETTLED;
    };
    const isUsed = async () => {
      throw new Error('not asked');
    };
    const { settle, looks } = openSettler({ reply, named, isUsed });
    expect(await settle(randomIntent())).toEqual(SETTLED);
    expect([asked, looks]).toEqual([[NAME], []]);
  });

  test.each([
    ['shows nothing of the payment', async () => null],
    [
      'cannot be read',
      async () => {
        throw new Error('the chain is away');
      },
    ],
  ])('proves nothing where it %s: the evidence decides', async (_, named) => {
    const { settle, looks } = openSettler({ reply, named, verdicts: [{ kind: 'open' }, SETTLED] });
    expect(await settle(randomIntent())).toEqual(SETTLED);
    expect(looks).toHaveLength(2);
  });

  test('is read again while it is not mined', async () => {
    const found = [null, SETTLED];
    const named = async () => found.shift() ?? null;
    const { settle, looks } = openSettler({ reply, named, isUsed: async () => false });
    expect(await settle(randomIntent())).toEqual(SETTLED);
    expect(looks).toEqual([]);
  });

  test.each(['', 'no hash', `${NAME}00`])(
    'is not asked for where it is no transaction hash: "%s"',
    async (transaction) => {
      const named = async () => {
        throw new Error('asked');
      };
      const { settle, looks } = openSettler({
        named,
        verdicts: [SETTLED],
        reply: { kind: 'accepted', transaction },
      });
      expect(await settle(randomIntent())).toEqual(SETTLED);
      expect(looks).toHaveLength(1);
    },
  );

  test('is not read when the facilitator refused the payment', async () => {
    const { settle } = openSettler({
      reply: TRANSPORT,
      named: async () => SETTLED,
      verdicts: [{ kind: 'open' }],
    });
    expect(await settle(randomIntent())).toEqual(UNKNOWN);
  });
});

describe('a payment that is handed over', () => {
  test('is noted first, and ends as the evidence says', async () => {
    const { settle, events, requests } = openSettler({ verdicts: [SETTLED] });
    const intent = randomIntent();
    expect(await settle(intent)).toEqual(SETTLED);
    expect(events).toEqual(['noted', 'handed over']);
    expect(requests[0]?.paymentRequirements).toMatchObject({
      network: NETWORK,
      amount: '1000',
      maxTimeoutSeconds: 604_900,
    });
  });

  test('is not sent when its row no longer awaits settlement, and its payer is not blamed', async () => {
    const { settle, events, looks, reported, refused } = openSettler({ isNoted: false });
    const intent = randomIntent({ hasCode: true });
    expect(await settle(intent)).toEqual(UNKNOWN);
    expect([events, looks, refused(intent)]).toEqual([['noted'], [], null]);
    // Nothing has failed, so no failure is logged.
    expect(reported).toEqual([]);
  });

  test('is looked up in the evidence after growing pauses of two seconds at most, until its time is over', async () => {
    const { settle, looks } = openSettler();
    expect(await settle(randomIntent())).toEqual(UNKNOWN);
    expect(looks).toEqual([0, 100, 300, 700, 1500, 3100]);
  });

  test('is not looked up any more once that time is over', async () => {
    const { settle, looks } = openSettler({ watchMs: 700 });
    expect(await settle(randomIntent())).toEqual(UNKNOWN);
    expect(looks).toEqual([0, 100, 300]);
  });

  test('is not looked up while a shared read shows it unused, until it expires', async () => {
    const reads: boolean[] = [];
    const isUsed = async () => {
      reads.push(reads.length === 3);
      return reads.at(-1) ?? false;
    };
    const used = openSettler({ isUsed, verdicts: [SETTLED] });
    expect(await used.settle(randomIntent())).toEqual(SETTLED);
    expect([reads, used.looks]).toEqual([[false, false, false, true], [700]]);
    const over = openSettler({ isUsed: async () => false, verdicts: [SETTLED] });
    const validBefore = 1_800_000_001n;
    const { authorization, ...intent } = randomIntent();
    await over.settle({ ...intent, authorization: { ...authorization, validBefore } });
    expect(over.looks).toEqual([1500]);
  });

  test('is looked up when the shared read fails', async () => {
    const { settle, looks } = openSettler({ isUsed: () => Promise.reject(new Error('away')), verdicts: [SETTLED] });
    expect(await settle(randomIntent())).toEqual(SETTLED);
    expect(looks).toEqual([0]);
  });

  test('is settled by a later lookup, also after one that failed', async () => {
    const away = new Error('away');
    const { settle, events, reported } = openSettler({ reply: TRANSPORT, verdicts: [away, { kind: 'open' }, SETTLED] });
    expect(await settle(randomIntent())).toEqual(SETTLED);
    expect(events).not.toContain('unsettled');
    expect(reported).toEqual([{ err: away }]);
  });

  test('again is looked up after what is more urgent: new payments come first', async () => {
    const { settle, ranks } = openSettler({ verdicts: [SETTLED] });
    await settle(randomIntent());
    await settle(randomIntent({ broadcast: true }));
    expect(ranks).toEqual(['settle', 'collect']);
  });

  test('fails when the evidence says so', async () => {
    const failed: Outcome = { kind: 'failed', reason: 'invalid_exact_evm_nonce_already_used' };
    expect(await openSettler({ verdicts: [failed] }).settle(randomIntent())).toEqual(failed);
  });
});

describe('a refusal before any broadcast', () => {
  const refusal: SettleReply = { kind: 'refused', reason: 'insufficient_funds' };

  test('ends a new payment at once, where the evidence agrees that it is unused', async () => {
    const { settle, looks, events, reported } = openSettler({ reply: refusal });
    const intent = randomIntent();
    expect(await settle(intent)).toEqual(REVERTED);
    expect([looks, events]).toEqual([[0], ['noted', 'handed over']]);
    expect(reported).toEqual([{ payment: intent.id, reason: 'insufficient_funds' }]);
  });

  test.each<[string, Found | Error, Outcome]>([
    ['shows it paid', SETTLED, SETTLED],
    ['does not answer', { kind: 'unknown' }, UNKNOWN],
    ['cannot be read', new Error('away'), UNKNOWN],
  ])('ends nothing by itself where the evidence %s', async (_, verdict, outcome) => {
    expect(await openSettler({ reply: refusal, verdicts: [verdict] }).settle(randomIntent())).toEqual(outcome);
  });

  test('of a payment that was handed over before is only watched, because it may have been broadcast', async () => {
    const { settle, looks } = openSettler({ reply: refusal });
    expect(await settle(randomIntent({ broadcast: true }))).toEqual(UNKNOWN);
    expect(looks.length).toBeGreaterThan(1);
  });
});

describe('a payment that was used before', () => {
  const usedBefore = async () => 'payment_already_used';

  test('is another ledger’s: it ends without being handed over', async () => {
    const { settle, events } = openSettler({ usedBefore });
    expect(await settle(randomIntent())).toEqual(USED_BEFORE);
    expect(events).toEqual([]);
  });

  test('is checked for only before it is handed over, because a later use may be ours', async () => {
    let asked = 0;
    const count = async () => {
      asked += 1;
      return null;
    };
    const { settle } = openSettler({ usedBefore: count, verdicts: [SETTLED] });
    expect(await settle(randomIntent({ broadcast: true }))).toEqual(SETTLED);
    expect(asked).toBe(0);
    expect(await settle(randomIntent())).toEqual(SETTLED);
    expect(asked).toBe(1);
  });

  test('fails in the same way when the first answer says so, and its payer is not blamed', async () => {
    const { settle, refused, events } = openSettler({ reply: { kind: 'used' }, usedBefore: async () => null });
    const wallet = randomIntent({ hasCode: true });
    expect(await settle(wallet)).toEqual(USED_BEFORE);
    expect([refused(wallet), events]).toEqual([null, ['noted', 'handed over']]);
  });

  test('may be our own when a later answer says so, and ends as the evidence says', async () => {
    const { settle } = openSettler({ reply: { kind: 'used' }, usedBefore: async () => null, verdicts: [SETTLED] });
    expect(await settle(randomIntent({ broadcast: true }))).toEqual(SETTLED);
  });

  test('ends as the chain says where the chain is the evidence', async () => {
    const { settle } = openSettler({ reply: { kind: 'used' }, verdicts: [SETTLED] });
    expect(await settle(randomIntent())).toEqual(SETTLED);
  });
});

describe('a payment that was answered and moved nothing', () => {
  test('of an account with code bans that payer, and no other', async () => {
    const { settler, settle, refused, events } = openSettler({ reply: ANSWERED });
    const [wallet, other] = [randomIntent({ hasCode: true }), randomIntent({ hasCode: true })];
    expect(await settle(wallet)).toEqual(UNKNOWN);
    expect([refused(wallet), refused(other)]).toEqual(['its settlements move nothing', null]);
    expect(settler.refused?.()).toEqual([[bytesToHex(wallet.authorization.from), 'its settlements move nothing']]);
    expect(events).not.toContain('unsettled');
  });

  test('of an account with code bans the payer also when the facilitator accepted the payment', async () => {
    const { settle, refused } = openSettler();
    const wallet = randomIntent({ hasCode: true });
    await settle(wallet);
    expect(refused(wallet)).not.toBeNull();
  });

  test.each<[SettleReply, string]>([
    [ANSWERED, 'unexpected_settle_error'],
    [{ kind: 'accepted', transaction: '' }, 'accepted'],
  ])('is logged with the facilitator’s reply: %j is %s', async (reply, answer) => {
    const { settle, reported } = openSettler({ reply });
    const intent = randomIntent();
    await settle(intent);
    expect(reported).toEqual([{ payment: intent.id, answer }]);
  });

  test('of a plain account bans no payer, and makes the token be tested', async () => {
    const { settle, refused, events } = openSettler({ reply: ANSWERED });
    const plain = randomIntent();
    await settle(plain);
    expect([refused(plain), events.at(-1)]).toEqual([null, 'unsettled']);
  });

  test('of an account that has set code since it was checked bans that payer', async () => {
    const { settle, refused, events } = openSettler({ reply: ANSWERED, hasCode: async () => true });
    const turned = randomIntent({ hasCode: false });
    await settle(turned);
    expect([refused(turned), events]).toEqual(['its settlements move nothing', ['noted', 'handed over']]);
  });

  test('of an account that has removed its code since it was checked bans that payer as well', async () => {
    const { settle, refused } = openSettler({ reply: ANSWERED, hasCode: async () => false });
    const wallet = randomIntent({ hasCode: true });
    await settle(wallet);
    expect(refused(wallet)).toBe('its settlements move nothing');
  });

  test('of accounts that have set code since does not close the rail for others, even where the facilitator hung', async () => {
    const { settler, settle } = openSettler({ reply: TRANSPORT, hasCode: async () => true });
    for (let at = 0; at < 4; at++) await settle(randomIntent({ hasCode: false }));
    expect(settler.unavailable()).toBeNull();
  });

  test('of a plain account whose code cannot be read now bans no payer, and makes the token be tested', async () => {
    const { settle, refused, events } = openSettler({
      reply: ANSWERED,
      hasCode: () => Promise.reject(new Error('the chain is away')),
    });
    const plain = randomIntent({ hasCode: false });
    await settle(plain);
    expect([refused(plain), events.at(-1)]).toEqual([null, 'unsettled']);
  });

  test.each([{ hasCode: true }, { hasCode: false }])(
    'says nothing of its payer where the way was at fault: %j',
    async (more) => {
      const { settle, refused, events } = openSettler({ reply: TRANSPORT });
      const intent = randomIntent(more);
      await settle(intent);
      expect([refused(intent), events]).toEqual([null, ['noted', 'handed over']]);
    },
  );

  test('does not ban its payer when the evidence shows that it paid', async () => {
    const { settle, refused, events } = openSettler({ reply: ANSWERED, verdicts: [SETTLED] });
    const wallet = randomIntent({ hasCode: true });
    await settle(wallet);
    expect([refused(wallet), events]).toEqual([null, ['noted', 'handed over']]);
  });
});

describe('the rail’s health', () => {
  test.each<[string, Given, boolean]>([
    ['three that had no readable answer', { reply: TRANSPORT }, true],
    ['three that were answered in no known words', { reply: ANSWERED }, false],
    ['three that the facilitator refused', { reply: { kind: 'refused', reason: 'insufficient_funds' } }, false],
    ['three that are pending', { reply: { kind: 'pending', paymentId: null } }, false],
    ['three that were used before', { usedBefore: async () => 'payment_already_used' }, false],
    ['three that the Gateway knows already', { reply: { kind: 'used' }, usedBefore: async () => null }, false],
    ['three that no row waits for any more', { isNoted: false }, false],
  ])('after %s: closed is %s', async (_, given, isClosed) => {
    const { settler, settle } = openSettler(given);
    // One after the other, because the clock moves with each.
    for (let at = 0; at < 3; at++) {
      await settle(randomIntent());
      if (at < 2) expect(settler.unavailable()).toBeNull();
    }
    expect(settler.unavailable() !== null).toBe(isClosed);
  });
});

import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { AppError, UpstreamFailed } from '../../../../../src/errors.ts';
import { MAINNET, TESTNET } from '../../../../../src/payment/lightning/terms.ts';
import type { Credential } from '../../../../../src/payment/protocol.ts';
import { PaymentRefused } from '../../../../../src/payment/refusal.ts';
import { proofHeader } from '../../../../support/lightning/lightning-buyer.ts';
import { openRailBench, type RailBench } from '../../../../support/lightning/rail-bench.ts';

const DAY_MS = 86_400_000;
const WEEK_MS = 7 * DAY_MS;
const UNCLAIMED =
  'The payment was not taken yet: present the same proof again before its invoice is 360 seconds old, never pay twice.';
const GRANTED = 'The payment stays good for 7 days: present the same proof again, never pay twice.';

let bench: RailBench;
const open = async (...choices: Parameters<typeof openRailBench>) => {
  await bench?.close();
  bench = await openRailBench(...choices);
};
beforeEach(async () => {
  bench = await openRailBench();
});
afterEach(() => bench.close());

/** What a presentation ended with: the answer's text, the scheme's reason, or an error's status, code and what it says of the charge. */
const present = (tag: string, header: string, more: Parameters<RailBench['order']>[1] = {}) =>
  bench.redeem(bench.order(tag, more), header).then(
    ({ body }) => JSON.parse(Buffer.from(body).toString()).text as string,
    (error: unknown) => {
      if (error instanceof PaymentRefused) return error.reason;
      if (error instanceof AppError) return `${error.status} ${error.code} ${error.charged} ${error.retryAfterSeconds}`;
      return error;
    },
  );
const buy = (tag: string) => bench.buy(bench.order(tag));

describe('a proof of an offer', () => {
  test('buys a fresh answer, with a receipt that names the payment and no payer', async () => {
    const { header, key } = await buy('a');
    bench.handler.run = async (tag) => `fresh ${tag}`;
    const { body, receipt } = await bench.redeem(bench.order('a'), header);
    expect(Buffer.from(body).toString()).toBe('{"text":"fresh a"}');
    const transaction = key.paymentHash.toString('hex');
    expect(receipt).toEqual({ success: true, transaction, network: MAINNET.id });
  });

  test('is claimed for ten years, by our node’s terms, and grants its request for seven days', async () => {
    const { header, key } = await buy('a');
    const now = bench.clock.nowMs();
    const claim = bench.real.claim;
    const claims: unknown[] = [];
    bench.faults.claim = (claim_) => {
      claims.push(claim_);
      return claim(claim_);
    };
    await present('a', header);
    const requestHash = new Uint8Array(bench.order('a').binding.hash);
    expect(claims).toEqual([
      {
        network: MAINNET.id,
        paymentHash: expect.anything(),
        amountMsat: 25_000n,
        claimedAt: now,
        account: null,
        payTo: expect.anything(),
        keepUntil: now + 3650 * DAY_MS,
        grant: {
          requestHash: expect.anything(),
          redeemUntil: now + WEEK_MS,
          protocol: 'x402',
          route: '/v1/lightning/test/rail',
        },
      },
    ]);
    const found = await bench.real.findClaim(key);
    expect(found).toMatchObject({ claimedAt: now, grant: { state: 'claimed', redeemUntil: now + WEEK_MS } });
    expect(new Uint8Array(found!.grant!.requestHash)).toEqual(requestHash);
    expect(Buffer.from(found!.payTo).toString('hex')).toBe(bench.node.key);
  });

  test('buys nothing else, before and after it is claimed', async () => {
    const { header } = await buy('a');
    expect(await present('b', header)).toBe('invalid_exact_lnbtc_request_mismatch');
    expect(await present('a', header)).toBe('answer to a');
    expect(await present('b', header)).toBe('duplicate_settlement');
  });

  test('gets the same answer again, after its invoice has run out and until the time for it is over', async () => {
    const { header } = await buy('a');
    const { onSent } = await bench.redeem(bench.order('a'), header);
    await onSent?.();
    bench.handler.run = async () => 'another';
    await bench.clock.advance(899_999);
    expect(await present('a', header)).toBe('answer to a');
    await bench.clock.advance(1);
    expect(await present('a', header)).toBe('duplicate_settlement');
  });

  test('that was claimed and not answered is served for seven days to the millisecond', async () => {
    const { header } = await buy('a');
    bench.faults.keptReply = async () => null;
    bench.handler.run = async () => Promise.reject(new UpstreamFailed('test', 'down'));
    expect(await present('a', header)).toBe('502 upstream_failed unknown 1');
    await bench.clock.advance(WEEK_MS - 1);
    expect(await present('a', header)).toBe('502 upstream_failed unknown 1');
    await bench.clock.advance(1);
    expect(await present('a', header)).toBe('duplicate_settlement');
  });

  test('is refused once its invoice has run out unclaimed', async () => {
    const { header } = await buy('a');
    await bench.clock.advance(360_000);
    expect(await present('a', header)).toBe('answer to a');
    const late = await buy('b');
    await bench.clock.advance(361_000);
    expect(await present('b', late.header)).toBe('invalid_exact_lnbtc_invoice_expired');
  });

  test('is claimed once by two presentations at once, which both count for the same buyer', async () => {
    const { header } = await buy('a');
    const both = await Promise.all([present('a', header), present('a', header)]);
    expect(both.filter((outcome) => outcome === 'answer to a').length).toBeGreaterThanOrEqual(1);
    for (const outcome of both) expect(['answer to a', '409 payment_in_flight unknown 1']).toContain(outcome);
  });

  test('is served under a lease that names this process and this presentation', async () => {
    const holders: string[] = [];
    bench.faults.takeLease = (key, holder, ...rest) => {
      holders.push(holder);
      return bench.real.takeLease(key, holder, ...rest);
    };
    for (const tag of ['a', 'b']) await present(tag, (await buy(tag)).header);
    expect(new Set(holders).size).toBe(2);
    for (const holder of holders) expect(holder).toMatch(/^boot:[0-9a-f]{8}-[0-9a-f-]{27}$/);
  });

  test('whose claim cannot be found again is not served', async () => {
    const { header } = await buy('a');
    bench.faults.findClaim = async () => null;
    expect(await present('a', header)).toBe('duplicate_settlement');
  });

  test('that is no header of a payment is refused, and says nothing about a payment', async () => {
    expect(await present('a', 'x')).toBe('invalid_payload');
  });
});

describe('a client that has paid', () => {
  const isBuyer = (client = '192.0.2.1') => bench.buyers.has(client);

  test('is remembered as a buyer once its proof is claimed', async () => {
    const { header } = await buy('a');
    expect(isBuyer()).toBe(false);
    await present('a', header, { client: '192.0.2.9' });
    expect([isBuyer('192.0.2.9'), isBuyer()]).toEqual([true, false]);
  });

  test('is not one whose proof is claimed already or refused', async () => {
    const { header, requirement } = await buy('a');
    await present('a', header, { client: '192.0.2.9' });
    expect(await present('a', header)).toBe('answer to a');
    expect(await present('a', proofHeader(requirement, '00'.repeat(32)))).toBe(
      'invalid_exact_lnbtc_preimage_hash_mismatch',
    );
    expect(isBuyer()).toBe(false);
  });

  test('is not one that loses the race for a claim', async () => {
    const { header } = await buy('a');
    bench.faults.claim = async (claim) => {
      await bench.real.claim(claim);
      return 'duplicate';
    };
    expect(await present('a', header)).toBe('answer to a');
    expect(isBuyer()).toBe(false);
  });
});

describe('a failure after the payment', () => {
  test('of the store, before the claim, says that the proof was not taken', async () => {
    const { header } = await buy('a');
    bench.faults.findClaim = async () => Promise.reject(new Error('disk'));
    const failed = bench.redeem(bench.order('a'), header);
    await expect(failed).rejects.toMatchObject({
      status: 500,
      code: 'internal',
      charged: 'unknown',
      retryAfterSeconds: 1,
      message: UNCLAIMED,
    });
    await expect(failed).rejects.toMatchObject({ cause: { message: 'disk' } });
  });

  test('before the claim of a proof with a challenge, says for how long the challenge keeps it valid', async () => {
    const { requirement, preimage } = await bench.ask(bench.order('a'));
    bench.faults.findClaim = async () => Promise.reject(new Error('disk'));
    const credential: Credential = {
      protocol: 'l402',
      accepted: null,
      payload: { invoice: requirement.extra.invoice, preimage },
      identifier: () => null,
      answered: { isSigned: true, isFor: () => true, lateSeconds: 7 * 86_400 },
    };
    await expect(bench.redeemed(bench.order('a'), credential)).rejects.toMatchObject({
      charged: 'unknown',
      message: 'The payment was not taken yet: present the same proof again within 7 days, never pay twice.',
    });
  });

  test('of the handler, after the claim, says that the payment stays valid', async () => {
    const { header } = await buy('a');
    bench.faults.keptReply = async () => null;
    bench.handler.run = async () => Promise.reject(new UpstreamFailed('test', 'down'));
    await expect(bench.redeem(bench.order('a'), header)).rejects.toMatchObject({ message: `test: down ${GRANTED}` });
  });

  test('stays as it is where it says already that the charge is unknown', async () => {
    const { header } = await buy('a');
    const open = new AppError(503, 'ledger_unavailable', 'later', { charged: 'unknown', retryAfterSeconds: 7 });
    bench.faults.takeLease = async () => Promise.reject(open);
    expect(await present('a', header)).toBe('503 ledger_unavailable unknown 7');
  });
});

describe('on a node whose key others use too', () => {
  beforeEach(() => open({ shared: true }));

  test('a payment is served once the node has it', async () => {
    const { header } = await buy('a');
    expect(await present('a', header)).toBe('answer to a');
    expect(bench.buyers.has('192.0.2.1')).toBe(true);
  });

  test('a payment that the node does not have is refused, and is not claimed', async () => {
    const { requirement, preimage, paymentHash } = await bench.ask(bench.order('a'));
    const header = proofHeader(requirement, preimage);
    expect(await present('a', header)).toBe('exact_lnbtc_payment_not_paid');
    expect(await bench.real.findClaim({ network: MAINNET.id, paymentHash })).toBeNull();
    expect(bench.buyers.has('192.0.2.1')).toBe(false);
  });

  test('a payment that the node cannot confirm is claimed, not served, and makes no client a buyer', async () => {
    const { header } = await buy('a');
    const runs = bench.handler.runs.length;
    await bench.node.setFault('500');
    expect(await present('a', header)).toMatch(/^503 lightning_unavailable unknown/);
    expect(bench.buyers.has('192.0.2.1')).toBe(false);
    expect(bench.handler.runs).toHaveLength(runs);
    await bench.node.setFault(null);
    await bench.clock.advance(400_000);
    expect(await present('a', header)).toBe('answer to a');
  });

  test('the node is not asked again for a payment that was answered', async () => {
    const { header } = await buy('a');
    await present('a', header);
    const asked = bench.node.received.length;
    expect(await present('a', header)).toBe('answer to a');
    expect(bench.node.received).toHaveLength(asked);
  });

  test('a bug in asking the node gets a 500, and not a refusal of the payment', async () => {
    const { header } = await buy('a');
    bench.issuer.isPaid = async () => Promise.reject(new TypeError('bug'));
    const failed = bench.redeem(bench.order('a'), header);
    await expect(failed).rejects.toMatchObject({ status: 500, cause: { message: 'bug' }, message: UNCLAIMED });
  });
});

test('while a shared node is gone its payments are claimed, and served when a node is there', async () => {
  await open({ shared: true, hasNode: false });
  const header = await recordedElsewhere();
  await expect(bench.redeem(bench.order('a'), header)).rejects.toMatchObject({
    status: 503,
    code: 'lightning_unavailable',
    charged: 'unknown',
    retryAfterSeconds: 60,
    message: `The node that has the payment is not configured. ${GRANTED}`,
  });
});

test('while the node is gone a proof of an earlier offer is served', async () => {
  await open({ hasNode: false });
  expect(await present('a', await recordedElsewhere())).toBe('answer to a');
  expect(await present('b', await recordedElsewhere(false))).toBe('invalid_exact_lnbtc_invoice_payee_mismatch');
});

/** An offer of another instance over the same node, paid; recorded in this ledger or not. */
async function recordedElsewhere(isRecorded = true): Promise<string> {
  const other = await openRailBench();
  try {
    other.clock.nowMs = bench.clock.nowMs;
    const tag = isRecorded ? 'a' : 'b';
    const { header, key } = await other.buy(other.order(tag));
    const record = await other.real.findInvoice(key);
    if (isRecorded && record) await bench.real.recordInvoice(record, Buffer.from('sealed'));
    return header;
  } finally {
    await other.close();
  }
}

test('a proof of an invoice of another network is looked for on that network', async () => {
  const { header, key } = await buy('a');
  const asked: string[] = [];
  bench.faults.findClaim = (wanted) => {
    asked.push(wanted.network);
    return bench.real.findClaim(wanted);
  };
  await present('a', header);
  expect(new Set(asked)).toEqual(new Set([key.network]));
  expect(key.network).not.toBe(TESTNET.id);
});

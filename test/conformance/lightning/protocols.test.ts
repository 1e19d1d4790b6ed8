import { fetch402, fetchWithL402, fetchWithMpp } from '@getalby/lightning-tools';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { type EmbeddedLightning, startEmbeddedLightning } from '../../../dev/lightning/lightning.ts';
import { hashOfPreimage, offeredBy, presentProof } from '../../support/lightning/lightning-buyer.ts';
import { type LightningService, startLightningService } from '../../support/lightning/lightning-service.ts';
import { askedBy, spellingsOf } from '../../support/lightning/spellings.ts';
import { moodyEndpoint } from '../../support/service/moody-endpoint.ts';
import { type Answer, call } from '../../support/service/service.ts';
import { createStillClock } from '../../support/still-clock.ts';
import { credentialOf } from '../../support/usdc/mpp-buyer.ts';

const moody = moodyEndpoint();
const other = moodyEndpoint('/test/other', '0.001');
const clock = createStillClock();

let lightning: EmbeddedLightning;
let service: LightningService;
let tag = 0;
const fresh = (path = moody.path) => `${path}?tag=p${++tag}`;

/** A paid invoice in the three spellings of its proof. */
interface Paid {
  readonly preimage: string;
  readonly l402: string;
  readonly mpp: string;
  readonly x402: { readonly header: string };
}

async function pay(path: string): Promise<Paid> {
  const answer = await call(service.origin, path);
  const preimage = await lightning.pay(askedBy(answer).invoice);
  const { l402, mpp, x402 } = spellingsOf(answer, preimage);
  const textOf = (headers: Record<string, string>): string => Object.values(headers).join();
  return { preimage, l402: textOf(l402), mpp: textOf(mpp), x402: { header: textOf(x402) } };
}

const present = (path: string, authorization: string) => call(service.origin, path, { headers: { authorization } });
const errorOf = (answer: Answer): string => JSON.parse(answer.body).error;
const wallet = () => {
  let paid = 0;
  const payInvoice = async ({ invoice }: { invoice: string }) => {
    paid++;
    return { preimage: await lightning.pay(invoice) };
  };
  return { payInvoice, paid: () => paid };
};

beforeAll(async () => {
  lightning = await startEmbeddedLightning();
  service = await startLightningService(lightning, { catalogue: [moody.endpoint, other.endpoint], clock });
});
afterAll(async () => {
  await service.stop();
  await lightning.stop();
});
beforeEach(() => moody.recover());

describe('a 402', () => {
  test('asks for one invoice in three protocols, L402 before Payment', async () => {
    const answer = await call(service.origin, fresh());
    const { invoice, challenge } = askedBy(answer);
    const accepted = offeredBy(answer);
    expect(accepted.extra.invoice).toBe(invoice);
    const request = JSON.parse(Buffer.from(challenge.request ?? '', 'base64url').toString());
    expect(request).toEqual({
      amount: String(Number(accepted.amount) / 1000),
      currency: 'sat',
      methodDetails: { invoice, network: expect.any(String), paymentHash: expect.stringMatching(/^[0-9a-f]{64}$/) },
      recipient: accepted.payTo,
    });
    expect(challenge).toMatchObject({ method: 'lightning', intent: 'charge', realm: new URL(service.origin).host });
    expect(Date.parse(challenge.expires ?? '')).toBeGreaterThan(Date.now());
  });

  test('names an invoice of their own to clients behind a proxy that is not trusted', async () => {
    const path = fresh();
    const ask = async (client: string) =>
      askedBy(await call(service.origin, path, { headers: { 'x-forwarded-for': client } })).invoice;
    const invoices = [await ask('203.0.113.1'), await ask('203.0.113.2'), await ask('203.0.113.1')];
    invoices.push(askedBy(await call(service.origin, path)).invoice);
    expect(new Set(invoices).size).toBe(4);
  });

  test('names one invoice to a client that asks twice, and another after it was paid', async () => {
    // An invoice is named again for 5 s.
    clock.stop();
    onTestFinished(clock.start);
    const path = fresh();
    const invoices = [];
    for (let asked = 0; asked < 2; asked++) invoices.push(askedBy(await call(service.origin, path)).invoice);
    expect(invoices[1]).toBe(invoices[0]);
    const paid = await pay(path);
    expect((await present(path, paid.l402)).status).toBe(200);
    expect(askedBy(await call(service.origin, path)).invoice).not.toBe(invoices[0]);
  });
});

describe('one payment', () => {
  test.each(['l402', 'mpp', 'x402'] as const)(
    'presented by %s first buys one answer, and every spelling gets its bytes',
    async (first) => {
      const path = fresh();
      const paid = await pay(path);
      const by = {
        l402: () => present(path, paid.l402),
        mpp: () => present(path, paid.mpp),
        x402: () => presentProof(service.origin, path, paid.x402),
      };
      const runs = moody.runs();
      const answers = [await by[first](), await by.l402(), await by.mpp(), await by.x402()];
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
      expect(new Set(answers.map(({ body }) => body)).size).toBe(1);
      expect(moody.runs()).toBe(runs + 1);
      const lookup = JSON.parse((await call(service.origin, `/v1/payments/${hashOfPreimage(paid.preimage)}`)).body);
      expect(lookup.payments).toMatchObject([{ rail: 'lightning', protocol: first }]);
    },
  );

  test('by MPP gets a receipt that is the same to the byte with each delivery, and names no preimage', async () => {
    const path = fresh();
    const paid = await pay(path);
    const [one, two] = [await present(path, paid.mpp), await present(path, paid.mpp)];
    expect(one.headers['payment-receipt']).toBe(two.headers['payment-receipt']);
    const receipt = JSON.parse(Buffer.from(String(one.headers['payment-receipt']), 'base64url').toString());
    expect(receipt).toMatchObject({ status: 'success', method: 'lightning', reference: hashOfPreimage(paid.preimage) });
    expect(JSON.stringify(one.headers)).not.toContain(paid.preimage);
    expect((await present(path, paid.l402)).headers['payment-receipt']).toBeUndefined();
  });

  test('whose run fails stays good: the kept reply is delivered', async () => {
    const path = fresh();
    const paid = await pay(path);
    moody.fail();
    expect((await present(path, paid.l402)).status).toBe(200);
  });

  test('64 presentations over all protocols at once buy one answer', async () => {
    const path = fresh();
    const paid = await pay(path);
    const runs = moody.runs();
    const ways = [
      () => present(path, paid.l402),
      () => present(path, paid.mpp),
      () => presentProof(service.origin, path, paid.x402),
    ];
    const answers = await Promise.all(Array.from({ length: 64 }, (_, at) => ways[at % 3]?.() ?? Promise.reject()));
    const served = answers.filter(({ status }) => status === 200);
    expect(new Set(served.map(({ body }) => body)).size).toBe(1);
    expect(answers.filter(({ status }) => status !== 200 && status !== 409)).toEqual([]);
    expect(moody.runs()).toBe(runs + 1);
  });
});

describe('a credential', () => {
  test('of another request is refused with a new invoice for this one', async () => {
    const paid = await pay(fresh());
    for (const path of [fresh(), fresh(other.path)]) {
      for (const authorization of [paid.l402, paid.mpp]) {
        const answer = await present(path, authorization);
        expect(answer.status).toBe(402);
        expect(askedBy(answer).invoice).toMatch(/^ln/);
      }
    }
  });

  test('with any changed part is refused, and buys nothing', async () => {
    const path = fresh();
    const paid = await pay(path);
    const wrong = 'ab'.repeat(32);
    const decoded = JSON.parse(Buffer.from(paid.mpp.slice(8), 'base64url').toString());
    const encode = (value: unknown) => `Payment ${Buffer.from(JSON.stringify(value)).toString('base64url')}`;
    const { challenge } = decoded;
    const cases: [string, string][] = [
      [paid.l402.replace(paid.preimage, wrong), 'invalid_exact_lnbtc_preimage_hash_mismatch'],
      [paid.l402.replace('L402 Ag', 'L402 Bg'), 'invalid_challenge'],
      ['L402 nothing', 'invalid_payload'],
      ['Payment !', 'invalid_payload'],
      [encode({}), 'invalid_payload'],
      [encode({ challenge, payload: { preimage: wrong } }), 'invalid_exact_lnbtc_preimage_hash_mismatch'],
      [encode({ challenge, payload: {} }), expect.stringMatching(/preimage/) as never],
      [encode({ challenge: { ...challenge, realm: 'other' }, payload: decoded.payload }), 'invalid_challenge'],
      [
        encode({ challenge: { ...challenge, expires: '2999-01-01T00:00:00Z' }, payload: decoded.payload }),
        'invalid_challenge',
      ],
    ];
    for (const [authorization, reason] of cases) {
      const answer = await present(path, authorization);
      expect([answer.status, errorOf(answer)], authorization).toEqual([402, reason]);
    }
    expect((await present(path, paid.mpp)).status).toBe(200);
  });

  test('beside another payment on one request is refused with 400', async () => {
    const path = fresh();
    const paid = await pay(path);
    const headers = { authorization: paid.l402, 'payment-signature': paid.x402.header };
    const answer = await call(service.origin, path, { headers });
    const { code, charged } = JSON.parse(answer.body);
    expect([answer.status, code, charged]).toEqual([400, 'two_payments', 'unknown']);
    expect((await present(path, paid.l402)).status).toBe(200);
  });

  test('of a method that is not sold here is 400, and does not say that nothing was charged for it', async () => {
    const challenge = { id: 'x', realm: 'x', method: 'evm', intent: 'charge', request: 'e30' };
    const { status, body } = await present(fresh(), credentialOf(challenge, {}));
    expect([status, JSON.parse(body).code, JSON.parse(body).charged]).toEqual([400, 'method_unsupported', 'unknown']);
  });

  test('with several tokens buys the request of the one that its preimage has paid, wherever it stands', async () => {
    const path = fresh();
    const unpaid = askedBy(await call(service.origin, fresh())).macaroon;
    const paid = await pay(path);
    const token = paid.l402.slice('L402 '.length, paid.l402.indexOf(':'));
    for (const tokens of [`${unpaid},${token}`, `${token}, ${unpaid}`])
      expect((await present(path, `L402 ${tokens}:${paid.preimage}`)).status).toBe(200);
  });

  test('of another scheme of authentication is ignored', async () => {
    const path = fresh();
    const paid = await pay(path);
    expect((await present(path, 'Bearer abc')).status).toBe(402);
    const headers = { authorization: 'Basic abc', 'payment-signature': paid.x402.header };
    expect((await call(service.origin, path, { headers })).status).toBe(200);
  });

  test('under the scheme’s old name LSAT is accepted', async () => {
    const path = fresh();
    const paid = await pay(path);
    expect((await present(path, paid.l402.replace('L402', 'LSAT'))).status).toBe(200);
  });

  test('is ignored by the free routes and refuses nothing there', async () => {
    const paid = await pay(fresh());
    expect((await present('/v1/lightning', paid.l402)).status).toBe(200);
  });
});

describe('an unmodified client buys by itself', () => {
  test.each([
    ['fetch402', fetch402],
    ['fetchWithL402', fetchWithL402],
  ] as const)('%s', async (_name, buy) => {
    const purse = wallet();
    const answer = await buy(`${service.origin}${fresh()}`, {}, { wallet: purse });
    expect([answer.status, purse.paid()]).toEqual([200, 1]);
  });

  test('fetchWithMpp, where Payment is the only line that it is shown', async () => {
    const path = fresh();
    const purse = wallet();
    const answer = await fetchWithMpp(`${service.origin}${path}`, {}, { wallet: purse });
    // It reads the first line alone, which is L402's, and then pays nothing.
    expect([answer.status, purse.paid()]).toEqual([402, 0]);
  });
});

test('a paid token is served after a change of the secret, also by a ledger without a record of its invoice', async () => {
  const [first, second] = ['a secret of more than 32 characters', 'another secret of 32 characters and more'];
  const open = (env: Record<string, string>) =>
    startLightningService(lightning, {
      catalogue: [moody.endpoint],
      env: { ...env, PUBLIC_ORIGIN: 'http://percall.test' },
    });
  const before = await open({ MPP_SECRET: first });
  const path = fresh();
  const { macaroon, invoice } = askedBy(await call(before.origin, path));
  const authorization = `L402 ${macaroon}:${await lightning.pay(invoice)}`;
  await before.stop();
  for (const env of [{ MPP_SECRET: second }, { MPP_SECRET: second, MPP_SECRET_PREVIOUS: first }]) {
    const after = await open(env);
    expect((await call(after.origin, path, { headers: { authorization } })).status).toBe(200);
    await after.stop();
  }
});

test('where no invoice can be made, a refused proof of L402 or MPP is 503 with the reason and a time to try again, and never a 402 without a challenge', async () => {
  const path = fresh();
  const paid = await pay(path);
  const bare = await startLightningService(lightning, {
    catalogue: [moody.endpoint],
    env: { LIGHTNING_RECEIVER: 'none', PUBLIC_ORIGIN: service.origin },
  });
  for (const authorization of [paid.l402, paid.mpp, 'L402 nothing', 'Payment !']) {
    const answer = await call(bare.origin, path, { headers: { authorization } });
    const { code, charged, detail } = JSON.parse(answer.body);
    expect([answer.status, code, charged], authorization).toEqual([503, 'lightning_unavailable', 'unknown']);
    expect(answer.headers['retry-after']).toBe('300');
    expect(detail).toMatch(/^The payment was refused: invalid_\w+\. No new offer can be made now: /);
  }
  const x402 = await presentProof(bare.origin, path, paid.x402);
  expect([x402.status, JSON.parse(x402.body).accepts]).toEqual([402, []]);
  await bare.stop();
});

import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { ask } from '../../support/ledger/kill-ledger.ts';
import { askedBy, SPELLINGS, spellingsOf } from '../../support/lightning/spellings.ts';
import { seed, seededRandom } from '../../support/random.ts';
import { moodyEndpoint } from '../../support/service/moody-endpoint.ts';
import { type Answer, call, type Service, startService } from '../../support/service/service.ts';
import { balanceOf, newBuyer } from '../../support/usdc/buyer.ts';
import { credentialOf, newMppBuyer } from '../../support/usdc/mpp-buyer.ts';

/** Half of them before the credentials buy, half of them afterwards. */
const CROSSINGS = process.env.SLOW ? 10_000 : 80;
const [PAID, MPP, LIGHTNING] = ['/v1/paid', '/v1/mpp', '/v1/lightning'];
const TAGS = ['x', 'y'];

/** A paid credential as it is presented: at its own target, in its own header field. */
interface Credential {
  readonly target: string;
  readonly field: string;
  readonly value: string;
  /** x402 binds a payment in USDC to its terms only: until it is sold, it may buy any request of this price. */
  readonly isFreeUntilSold: boolean;
}

const [cheap, dear] = [moodyEndpoint('/test/cheap', '0.0005'), moodyEndpoint('/test/dear', '0.002')];
const requests = [cheap, dear].flatMap(({ endpoint: { path } }) => TAGS.map((tag) => `${path}?tag=${tag}`));
const targets = [PAID, MPP, LIGHTNING].flatMap((mount) => requests.map((request) => mount + request));

let network: EmbeddedNetwork;
let service: Service;
let file: string;
beforeAll(async () => {
  network = await startEmbeddedNetwork({ lightning: true });
  const env = {
    MPP: 'on',
    LIGHTNING_INVOICES_PER_MINUTE: '0',
    LIGHTNING_INVOICES_TOTAL_PER_MINUTE: '0',
    COLLECTOR: 'off',
  };
  service = await startService(network, { env, catalogue: [cheap.endpoint, dear.endpoint] });
  file = join(service.dataDir, 'ledger.db');
});
afterAll(async () => {
  await service.stop();
  await network.stop();
});

const present = (target: string, field: string, value: string) =>
  call(service.origin, target, { headers: { [field]: value } });
const rows = () =>
  ['usdc_payments', 'lightning_claims'].map((table) => ask<number>(file, `SELECT count(*) FROM ${table}`));

/** Pays for one target in every protocol in which it can be paid. */
async function payFor(target: string): Promise<Credential[]> {
  if (target.startsWith(PAID)) {
    const { header } = await (await newBuyer(network)).sign(service.origin, target);
    return [{ target, field: 'payment-signature', value: header, isFreeUntilSold: true }];
  }
  if (target.startsWith(MPP)) {
    const { header } = await (await newMppBuyer(network)).sign(service.origin, target);
    return [{ target, field: 'authorization', value: header, isFreeUntilSold: false }];
  }
  const answer = await call(service.origin, target);
  const spelt = spellingsOf(answer, await network.lightning!.pay(askedBy(answer).invoice));
  return SPELLINGS.map((name) => {
    const [[field = '', value = ''] = []] = Object.entries(spelt[name]);
    return { target, field, value, isFreeUntilSold: false };
  });
}

const priceAt = (target: string): boolean => target.includes('/dear');

/** Whether a credential may be answered at this target. */
function isGoodAt({ target, isFreeUntilSold }: Credential, at: string, isSold: boolean): boolean {
  return at === target || (isFreeUntilSold && !isSold && at.startsWith(PAID) && priceAt(at) === priceAt(target));
}

/** The same text as another protocol would carry it. */
function redressed({ value }: Credential, random: () => number): [field: string, value: string] {
  const bare = value.slice(value.indexOf(' ') + 1);
  const scheme = ['Payment', 'L402', 'LSAT', 'Bearer'][Math.floor(random() * 5)];
  return scheme === undefined ? ['payment-signature', bare] : ['authorization', `${scheme} ${bare}`];
}

const decode = (text: string, form: BufferEncoding) => JSON.parse(Buffer.from(text, form).toString()) as object;
const encode = (value: object, form: BufferEncoding) => Buffer.from(JSON.stringify(value)).toString(form);

/** Credentials of one kind have the same form. */
const kindOf = ({ target, value }: Credential): string => `${target.split('/')[2]} ${/^\w+ /.exec(value)}`;

/** The first credential's terms with the second one's proof. Both are of one kind. */
function spliced(one: Credential, two: Credential): string {
  if (one.value.startsWith('L402 ')) return `${one.value.split(':')[0]}:${two.value.split(':')[1]}`;
  const [start, form] = one.value.startsWith('Payment ')
    ? (['Payment ', 'base64url'] as const)
    : (['', 'base64'] as const);
  const { payload } = decode(two.value.slice(start.length), form) as { payload: object };
  return start + encode({ ...decode(one.value.slice(start.length), form), payload }, form);
}

const X402_FIELD = 'payment-signature';
const isX402InUsdc = ({ target }: Credential): boolean => target.startsWith(PAID);
const isMppInUsdc = ({ target }: Credential): boolean => target.startsWith(MPP);
const partsOf = (credential: Credential) =>
  (isMppInUsdc(credential)
    ? decode(credential.value.slice('Payment '.length), 'base64url')
    : decode(credential.value, 'base64')) as { challenge: object; accepted: object; payload: Record<string, unknown> };

/** The authorization of a payment by MPP as x402 carries one, for the terms of an x402 payment. */
function asX402(mpp: Credential, x402: Credential): string {
  const { type: _type, signature, ...authorization } = partsOf(mpp).payload;
  return encode({ x402Version: 2, accepted: partsOf(x402).accepted, payload: { signature, authorization } }, 'base64');
}

/** The authorization of an x402 payment as MPP carries one, under the challenge that another payment has answered. */
function asMpp(x402: Credential, mpp: Credential): string {
  const { signature, authorization } = partsOf(x402).payload as { signature: string; authorization: object };
  return credentialOf(partsOf(mpp).challenge, { type: 'authorization', signature, ...authorization });
}

/**
 * An authorization in the other protocol's form. x402's never answers a challenge, because its nonce is not the challenge's. MPP's is a payment by
 * x402 as well: until it is sold, it is good for any request of its price there.
 */
function rewrapped(x402: Credential, mpp: Credential, isSold: boolean, toMpp: boolean): Crossing | null {
  if (toMpp) return [mpp.target, 'authorization', asMpp(x402, mpp)];
  const isGood = !isSold && priceAt(mpp.target) === priceAt(x402.target);
  return isGood ? null : [x402.target, X402_FIELD, asX402(mpp, x402)];
}

type Crossing = [target: string, field: string, value: string];

/**
 * One credential, presented where, how or with parts it is not good for. Null when the draw is no crossing. `way`, in [0, 1), chooses what is wrong with
 * it.
 */
function drawCrossing(all: readonly Credential[], way: number, random: () => number, isSold: boolean): Crossing | null {
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
  const [one, at] = [pick(all), pick(targets)];
  if (way < 0.15)
    return rewrapped(pick(all.filter(isX402InUsdc)), pick(all.filter(isMppInUsdc)), isSold, random() < 0.5);
  if (way < 0.7) return isGoodAt(one, at, isSold) ? null : [at, one.field, one.value];
  if (way < 0.85) {
    const [field, value] = redressed(one, random);
    // LSAT is the old name of L402.
    return value.replace(/^LSAT/, 'L402') === one.value ? null : [at, field, value];
  }
  // With another proof of the same price, x402's terms are a good payment in USDC.
  const two = pick(all.filter((other) => kindOf(other) === kindOf(one) && other.target !== one.target));
  return one.isFreeUntilSold ? null : [one.target, one.field, spliced(one, two)];
}

async function cross(
  count: number,
  all: readonly Credential[],
  random: () => number,
  isSold: boolean,
): Promise<number> {
  const kept = rows();
  for (let done = 0; done < count; ) {
    // Every twentieth in turn, so that each way comes up however few crossings there are.
    const crossing = drawCrossing(all, ((done % 20) + random()) / 20, random, isSold);
    if (crossing === null) continue;
    const answer: Answer = await present(...crossing);
    const context = `crossing ${done}, seed ${seed} (run again with SEED=${seed}): ${crossing.join(' ')} ${answer.body}`;
    expect([400, 402], context).toContain(answer.status);
    expect(answer.headers['payment-receipt'], context).toBeUndefined();
    done++;
  }
  expect(rows(), `seed ${seed}`).toEqual(kept);
  return count;
}

test(
  `of ${CROSSINGS} random credentials of one route, request, protocol or rail that are presented at another none buys, and each still buys its own`,
  async () => {
    const random = seededRandom('crossings');
    const all: Credential[] = [];
    for (const target of targets) all.push(...(await payFor(target)));
    const before = await balanceOf(network, network.seller);
    const [payments = 0, claims = 0] = rows();
    await cross(CROSSINGS / 2, all, random, false);
    expect(rows()).toEqual([payments, claims]);
    expect(await balanceOf(network, network.seller)).toBe(before);

    const bodies = new Map<string, string>();
    for (const { target, field, value } of all) {
      const { status, body } = await present(target, field, value);
      // The spellings of one Lightning payment buy one answer.
      expect([status, body], target).toEqual([200, bodies.get(target) ?? body]);
      bodies.set(target, body);
    }
    expect(rows()).toEqual([payments + 8, claims + 4]);
    const paid = await balanceOf(network, network.seller);
    expect(paid - before).toBe(2n * 2n * (500n + 2000n));

    await cross(CROSSINGS / 2, all, random, true);
    expect(await balanceOf(network, network.seller)).toBe(paid);
  },
  CROSSINGS * 200 + 60_000,
);

test('an authorization for MPP that is not sold buys another request of its price over x402, as every x402 authorization does, and then nothing else', async () => {
  const [own, other] = [`${MPP}/test/cheap?tag=own`, `${PAID}/test/cheap?tag=other`];
  const [[mpp], [x402]] = [await payFor(own), await payFor(other)];
  const before = await balanceOf(network, network.seller);
  const sold = await present(other, X402_FIELD, asX402(mpp!, x402!));
  expect(sold.status).toBe(200);
  const refused = await present(own, mpp!.field, mpp!.value);
  expect([refused.status, JSON.parse(refused.body).code]).toEqual([402, 'payment_already_used']);
  const reversed = await present(own, 'authorization', asMpp(x402!, mpp!));
  expect([reversed.status, JSON.parse(reversed.body).code]).toEqual([402, 'invalid_challenge_nonce']);
  expect((await balanceOf(network, network.seller)) - before).toBe(500n);
});

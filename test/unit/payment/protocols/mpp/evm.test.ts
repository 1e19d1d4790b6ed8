import { beforeEach, describe, expect, test } from 'vitest';
import { hexToBytes } from '../../../../../src/lib/hex.ts';
import type { PreparedProtocol, RequestMessage } from '../../../../../src/payment/protocol.ts';
import { type Challenge, nonceOf, withId } from '../../../../../src/payment/protocols/mpp/challenge.ts';
import { createMppEvm } from '../../../../../src/payment/protocols/mpp/evm.ts';
import { createManualClock } from '../../../../support/manual-clock.ts';
import { moodyEndpoint } from '../../../../support/service/moody-endpoint.ts';
import { answerTo, challengeIn, credentialOf } from '../../../../support/usdc/mpp-buyer.ts';
import { newKey, plainRequirement } from '../../../../support/usdc/payments.ts';

const START = Date.parse('2026-12-01T00:00:00Z');
const TARGET = '/v1/mpp/test/moody?tag=a';
const secrets = { current: Buffer.alloc(32, 1), previous: Buffer.alloc(32, 2) };
const requirement = plainRequirement(`0x${'11'.repeat(20)}`);
const { privateKey } = newKey();

const PLACE = { publicOrigin: 'http://percall.example', chain: { name: 'Arc', isPlayMoney: false } };

let clock: ReturnType<typeof createManualClock>;
let protocol: PreparedProtocol;
beforeEach(() => {
  clock = createManualClock(START);
  protocol = createMppEvm(clock, secrets, 'percall.example');
});

const open = (signedBy = protocol, method = 'GET') => {
  const demand = signedBy.prepare(moodyEndpoint().endpoint as never, [requirement], PLACE);
  const { fields } = demand({ method, target: TARGET, fault: null, refusal: null });
  return challengeIn({ headers: { 'www-authenticate': String(fields[0]?.[1]) } });
};
const message = (authorization: string, more: Partial<RequestMessage> = {}): RequestMessage => ({
  method: 'GET',
  url: TARGET,
  headers: { authorization },
  rawHeaders: ['Authorization', authorization],
  ...more,
});
/** The reason why the challenge of a read credential is refused; null where it is good. */
function judge(shown: RequestMessage, terms = requirement): string | null {
  try {
    protocol.read(shown).checkChallenge?.(terms, Math.floor(clock.nowMs() / 1000));
    return null;
  } catch (error) {
    return (error as Error).message;
  }
}

test('the nonce of the vector is computed to the byte', () => {
  const challenge = { id: '19ldYz0MwccJD78BazWxp6T-4KiQ7i78rkpO1Mz2wWU', realm: 'percall.example' };
  expect(nonceOf(challenge)).toBe('0xf03976f73f7ca5817914c97630f9625b5dc469a2d7e242356e7e3680a2ae9730');
});

describe('a challenge', () => {
  test('expires after ten minutes and can be answered until then', () => {
    const challenge = open();
    expect(challenge.expires).toBe('2026-12-01T00:10:00Z');
    const { header } = answerTo(challenge, privateKey);
    expect(judge(message(header))).toBeNull();
    clock = createManualClock(START + 600_000);
    expect(judge(message(header))).toBeNull();
    clock = createManualClock(START + 601_000);
    expect(judge(message(header))).toBe('challenge_expired');
  });

  test('is good for its request alone: its method, path, query and terms', () => {
    const { header } = answerTo(open(), privateKey);
    expect(judge(message(header, { url: `http://any.example${TARGET}` }))).toBeNull();
    for (const other of [{ method: 'POST' }, { url: `${TARGET}b` }, { url: '/v1/mpp/test/moody' }, { url: '*' }]) {
      expect(judge(message(header, other)), JSON.stringify(other)).toBe('invalid_challenge');
    }
    for (const changed of [{ amount: '999' }, { payTo: `0x${'12'.repeat(20)}` }, { network: 'eip155:1' as const }]) {
      expect(judge(message(header), { ...requirement, ...changed } as never)).toBe('invalid_challenge');
    }
  });

  test('of a HEAD is for the GET of the same target', () => {
    const { header } = answerTo(open(protocol, 'HEAD'), privateKey);
    expect(judge(message(header))).toBeNull();
  });

  test.each(['soon', '', undefined])('of ours that expires at %o is not open', (expires) => {
    const { id: _id, ...terms } = open() as unknown as Challenge;
    const { header } = answerTo(withId(secrets.current, { ...terms, expires }) as never, privateKey, {
      validBefore: 2n ** 40n,
    });
    expect(judge(message(header))).toBe('challenge_expired');
  });

  test('of another service with the same secret is refused', () => {
    const other = createMppEvm(clock, secrets, 'other.example');
    expect(judge(message(answerTo(open(other), privateKey).header))).toBe('invalid_challenge');
  });

  test('that the last secret signed is accepted for an hour after the start', () => {
    const before = createMppEvm(clock, { current: secrets.previous, previous: null }, 'percall.example');
    expect(judge(message(answerTo(open(before), privateKey).header))).toBeNull();
    clock = createManualClock(START + 3_600_000);
    const late = createMppEvm(clock, { current: secrets.previous, previous: null }, 'percall.example');
    expect(judge(message(answerTo(open(late), privateKey).header))).toBe('invalid_challenge');
  });
});

describe('a credential', () => {
  test('is read as the authorization that the rail knows, with the challenge as what only its buyer knows', () => {
    const { header, authorization, challenge } = answerTo(open(), privateKey);
    const [one, two] = [protocol.read(message(header)), protocol.read(message(answerTo(open(), privateKey).header))];
    expect(one).toMatchObject({ protocol: 'mpp', accepted: null, challengeId: challenge.id });
    expect(one.payload.authorization).toMatchObject({ nonce: nonceOf({ id: '', realm: '', ...challenge }) });
    expect(hexToBytes(String((one.payload.authorization as { nonce: string }).nonce))).toEqual(
      Buffer.from(authorization.nonce),
    );
    expect(one.identifier()).toEqual({ hash: expect.any(Buffer), isSingleUse: true });
    expect(one.identifier()?.hash).not.toEqual(two.identifier()?.hash);
  });

  test('of a client that repeats `opaque` decoded is the same credential', () => {
    const own = answerTo(open(), privateKey);
    const decoded = JSON.parse(Buffer.from(own.challenge.opaque ?? '', 'base64url').toString());
    const turned = Object.fromEntries(Object.entries(decoded).reverse());
    expect(judge(message(credentialOf({ ...own.challenge, opaque: turned }, own.payload)))).toBeNull();
  });

  test('with padding, unknown members and a source is accepted', () => {
    const { challenge, payload } = answerTo(open(), privateKey);
    const json = JSON.stringify({
      source: 'did:pkh:eip155:5042:0x',
      extra: 1,
      challenge: { ...challenge, x: '1' },
      payload,
    });
    expect(judge(message(`payment ${Buffer.from(json).toString('base64url')}==`))).toBeNull();
  });

  test('twice on one request is one payment, and two of them are 400', () => {
    const [{ header }, other] = [answerTo(open(), privateKey), answerTo(open(), privateKey)];
    const twice = (second: string) =>
      message(header, { rawHeaders: ['authorization', header, 'Authorization', second] });
    expect(judge(twice(header))).toBeNull();
    for (const second of [other.header, 'L402 token:preimage']) {
      expect(() => protocol.read(twice(second))).toThrow('two payments');
    }
    const headers = { authorization: header, 'payment-signature': 'x' };
    expect(() => protocol.read(message(header, { headers }))).toThrow('two payments');
  });
});

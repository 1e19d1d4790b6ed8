import { keccak256, stringToBytes } from 'viem';
import type { EmbeddedNetwork } from '../../../dev/network.ts';
import { bytesToHex, hexToBytes } from '../../../src/lib/hex.ts';
import type { Authorization } from '../../../src/payment/settler.ts';
import { type Answer, call } from '../service/service.ts';
import { newKey, payloadOf, type Requirement, signAuthorization } from './payments.ts';

/** The parameters of a challenge of the `Payment` scheme. */
export type Challenge = Record<string, string>;

/** A payment by MPP's method `evm`, ready to be presented. */
export interface MppPayment {
  readonly authorization: Authorization;
  readonly requirement: Requirement;
  readonly challenge: Challenge;
  readonly payload: Record<string, unknown>;
  /** The value of Authorization. */
  readonly header: string;
  readonly field: 'authorization';
}

/** The challenge of a 402, from its line of the scheme `Payment`. Empty without one. */
export function challengeIn({ headers }: Pick<Answer, 'headers'>): Challenge {
  const [, line = ''] = /(?:^|, )Payment (.+)$/.exec(String(headers['www-authenticate'] ?? '')) ?? [];
  return Object.fromEntries([...line.matchAll(/(\w+)="([^"]*)"/g)].map(([, name, value]) => [name, value]));
}

/** The value of Authorization that presents a payload for a challenge. */
export function credentialOf(challenge: object, payload: object): string {
  return `Payment ${Buffer.from(JSON.stringify({ challenge, payload })).toString('base64url')}`;
}

/** The hash that an authorization must have as its nonce, computed from the draft's text. */
export function nonceFor({ id = '', realm = '' }: Challenge): Buffer {
  return hexToBytes(keccak256(stringToBytes(`${id}${realm}`)));
}

/** The requirement of x402 with a challenge's terms, so that both protocols share the code that signs. */
function requirementIn({ request = '' }: Challenge): Requirement {
  const { amount, currency, methodDetails, recipient } = JSON.parse(Buffer.from(request, 'base64url').toString());
  return {
    scheme: 'exact',
    network: `eip155:${methodDetails.chainId}`,
    amount,
    asset: currency,
    payTo: recipient,
    maxTimeoutSeconds: 0,
    extra: {},
  };
}

/** Answers a challenge as a client does: the authorization is valid until the challenge expires. */
export function answerTo(
  challenge: Challenge,
  privateKey: Uint8Array,
  overrides: Parameters<typeof signAuthorization>[2] = {},
): MppPayment {
  const requirement = requirementIn(challenge);
  const validBefore = overrides.validBefore ?? BigInt(Date.parse(challenge.expires ?? '') / 1000);
  const terms = { nonce: nonceFor(challenge), ...overrides, validBefore };
  const authorization = signAuthorization(privateKey, requirement, terms);
  const { signature, authorization: fields } = payloadOf(authorization, requirement).payload as {
    signature: string;
    authorization: object;
  };
  const payload = { type: 'authorization', ...fields, signature };
  const header = credentialOf(challenge, payload);
  return { authorization, requirement, challenge, payload, header, field: 'authorization' };
}

/** Makes a buyer with a new key and some USDC. */
export async function newMppBuyer(network: EmbeddedNetwork, units = 1_000_000n) {
  const { privateKey, address } = newKey();
  if (units > 0n) await network.fundUsdc(address, units);
  return {
    address,
    privateKey,
    sign: async (origin: string, path: string, overrides?: Parameters<typeof signAuthorization>[2]) =>
      answerTo(challengeIn(await call(origin, path)), privateKey, overrides),
  };
}

/** Presents a credential. */
export function presentMpp(origin: string, path: string, { header }: { header: string }, from?: string) {
  return call(origin, path, { headers: { authorization: header }, ...(from && { from }) });
}

/** The decoded Payment-Receipt of an answer. */
export function receiptIn({ headers }: Pick<Answer, 'headers'>): Record<string, unknown> {
  return JSON.parse(Buffer.from(String(headers['payment-receipt']), 'base64url').toString());
}

/** The nonce of a payment, in hex. */
export const nonceHex = ({ authorization }: MppPayment): string => bytesToHex(authorization.nonce);

/** The problem document of an answer. */
export function problemIn({ body }: Pick<Answer, 'body'>) {
  return JSON.parse(body);
}

/** The status, the draft's problem type and our code of a refusal. Throws unless a 402 names a new challenge. */
export function refusalIn(answer: Answer): unknown[] {
  const { type, code, challengeId } = problemIn(answer);
  const { id, method } = challengeIn(answer);
  if (answer.status === 402 && (method !== 'evm' || id !== challengeId))
    throw new Error(`a 402 without its challenge: ${answer.body}`);
  return [answer.status, type.replace('https://paymentauth.org/problems/', ''), code];
}

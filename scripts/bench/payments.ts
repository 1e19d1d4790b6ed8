import { randomBytes } from 'node:crypto';
import { bytesToHex, hexToBytes } from '../../src/lib/hex.ts';
import { addressOf, signRecoverable } from '../../src/lib/secp256k1.ts';
import { authorizationDigest } from '../../src/payment/usdc/authorization.ts';
import { domainSeparator } from '../../src/payment/usdc/token.ts';

/** The requirement of a 402 that a bench pays. */
export interface Challenge {
  readonly network: string;
  readonly asset: string;
  readonly amount: string;
  readonly payTo: string;
  readonly maxTimeoutSeconds: number;
}

export async function readChallenge(url: string): Promise<Challenge> {
  const answer = await fetch(url);
  const header = answer.headers.get('payment-required');
  if (answer.status !== 402 || !header) throw new Error(`${url} answered ${answer.status} without a challenge`);
  const [requirement] = JSON.parse(Buffer.from(header, 'base64').toString('utf8')).accepts;
  return requirement;
}

/** Makes a PAYMENT-SIGNATURE header value. A native library signs it, because thousands are signed before the measurement starts. */
export function signPayment(privateKey: Uint8Array, challenge: Challenge): string {
  const { network, asset, amount, payTo, maxTimeoutSeconds } = challenge;
  const validBefore = BigInt(Math.floor(Date.now() / 1000) + maxTimeoutSeconds);
  const terms = {
    value: BigInt(amount),
    validAfter: 0n,
    validBefore,
    nonce: randomBytes(32),
    signature: new Uint8Array(),
  };
  const unsigned = { from: hexToBytes(addressOf(privateKey)), to: hexToBytes(payTo), ...terms };
  const separator = domainSeparator('USDC', '2', Number(network.split(':')[1]), hexToBytes(asset));
  const signature = bytesToHex(signRecoverable(authorizationDigest(unsigned, separator), privateKey));
  const authorization = {
    from: bytesToHex(unsigned.from),
    to: payTo,
    value: amount,
    validAfter: '0',
    validBefore: String(validBefore),
    nonce: bytesToHex(unsigned.nonce),
  };
  const payload = { signature, authorization };
  return Buffer.from(JSON.stringify({ x402Version: 2, accepted: challenge, payload })).toString('base64');
}

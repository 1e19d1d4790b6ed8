import { authorizationTypes } from '@x402/evm';
import { hashTypedData } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { describe, expect, test } from 'vitest';
import { bytesToHex, hexToBytes } from '../../../../src/lib/hex.ts';
import { recoverAddress } from '../../../../src/lib/secp256k1.ts';
import { PaymentRefused } from '../../../../src/payment/refusal.ts';
import { type Authorization, paymentKey } from '../../../../src/payment/settler.ts';
import {
  authorizationDigest,
  checkAccepted,
  checkAuthorization,
  decodeEip3009,
  hashAuthorization,
  MOST_VALIDITY_SECONDS,
  neededValidity,
  type ValidityBounds,
} from '../../../../src/payment/usdc/authorization.ts';
import { domainSeparator } from '../../../../src/payment/usdc/token.ts';
import { newKey, payloadOf, plainRequirement, signAuthorization, USDC } from '../../../support/usdc/payments.ts';

const requirement = plainRequirement('0x00000000000000000000000000000000000000Aa');
const now = Math.floor(Date.now() / 1000);
const buyer = newKey();
const separator = domainSeparator('USDC', '2', 5042, hexToBytes(USDC));

/** The SDK's margin alone, and no end: what a rail allows is tested with the rails. */
const BOUNDS: ValidityBounds = { least: 6, most: Number.POSITIVE_INFINITY };

function check(overrides: Parameters<typeof signAuthorization>[2] = {}, bounds = BOUNDS) {
  const payload = payloadOf(signAuthorization(buyer.privateKey, requirement, overrides), requirement);
  const authorization = decodeEip3009(payload.payload as Record<string, unknown>);
  checkAuthorization(authorization, requirement, now, bounds);
  return authorization;
}
const reason = (run: () => unknown): string => {
  try {
    run();
  } catch (error) {
    if (error instanceof PaymentRefused) return error.reason;
    throw error;
  }
  return 'accepted';
};

describe('the digest', () => {
  test('has the domain separator that Arc’s USDC publishes', () => {
    expect(bytesToHex(separator)).toBe('0x940506929bba468048a19b567f4f0d534714bc06604b5c3017e5d16785ccdf84');
    const testnet = domainSeparator('USDC', '2', 5042002, hexToBytes(USDC));
    expect(bytesToHex(testnet)).toBe('0x361191522483d32a83e70ae7183b4b9629442c13a78bc9921d6f707911c8c6b0');
  });

  test('is the one that an independent library computes, and its signature recovers', async () => {
    const authorization = check();
    const { signature, ...message } = authorization;
    const typed = {
      domain: { name: 'USDC', version: '2', chainId: 5042, verifyingContract: USDC },
      types: authorizationTypes,
      primaryType: 'TransferWithAuthorization',
      message: {
        ...message,
        from: bytesToHex(message.from),
        to: bytesToHex(message.to),
        nonce: bytesToHex(message.nonce),
      },
    } as const;
    const digest = authorizationDigest(authorization, separator);
    expect(bytesToHex(digest)).toBe(hashTypedData(typed));
    const account = privateKeyToAccount(bytesToHex(buyer.privateKey));
    expect(bytesToHex(signature)).toBe(await account.signTypedData(typed));
    expect(recoverAddress(digest, signature)).toEqual(new Uint8Array(hexToBytes(buyer.address)));
  });

  test('does not recover from a malleated, a compact or a garbled signature', () => {
    const authorization = check();
    const digest = authorizationDigest(authorization, separator);
    const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
    const s = BigInt(bytesToHex(authorization.signature.subarray(32, 64)));
    const flipped = Buffer.concat([
      authorization.signature.subarray(0, 32),
      Buffer.from((order - s).toString(16).padStart(64, '0'), 'hex'),
      Buffer.from([authorization.signature[64] === 27 ? 28 : 27]),
    ]);
    expect(recoverAddress(digest, flipped)).toBeNull();
    expect(recoverAddress(digest, authorization.signature.subarray(0, 64))).toBeNull();
    const compact = Buffer.from(authorization.signature);
    compact[64] = (compact[64] ?? 27) - 27;
    expect(recoverAddress(digest, compact)).toBeNull();
    expect(recoverAddress(digest, Buffer.alloc(65, 0xff))).toBeNull();
  });
});

describe('the cheap checks', () => {
  test('pass a good authorization, whatever the case of its hex', () => {
    const payload = payloadOf(signAuthorization(buyer.privateKey, requirement), requirement);
    const inner = payload.payload as { signature: string; authorization: Record<string, string> };
    const upper = { ...inner.authorization, nonce: `0x${inner.authorization.nonce?.slice(2).toUpperCase()}` };
    const one = decodeEip3009(inner);
    const two = decodeEip3009({ ...inner, authorization: upper });
    for (const decoded of [one, two])
      expect(reason(() => checkAuthorization(decoded, requirement, now, BOUNDS))).toBe('accepted');
    expect(two.nonce).toEqual(one.nonce);
  });

  test.each([
    ['another recipient', { to: USDC }, 'invalid_exact_evm_recipient_mismatch'],
    ['a unit less', { value: 999n }, 'invalid_exact_evm_payload_authorization_value_mismatch'],
    ['a unit more', { value: 1001n }, 'invalid_exact_evm_payload_authorization_value_mismatch'],
    ['not valid yet', { validAfter: BigInt(now + 60) }, 'invalid_exact_evm_payload_authorization_valid_after'],
    ['valid from this second on', { validAfter: BigInt(now) }, 'invalid_exact_evm_payload_authorization_valid_after'],
    ['over in five seconds', { validBefore: BigInt(now + 5) }, 'invalid_exact_evm_payload_authorization_valid_before'],
  ])('refuse %s by name', (_, overrides, expected) => {
    expect(reason(() => check(overrides))).toBe(expected);
  });

  test.each([
    ['a second less than is needed', 29, 30, Number.POSITIVE_INFINITY, false],
    ['as long as is needed', 30, 30, Number.POSITIVE_INFINITY, true],
    ['for ever, where we alone hold it', 10 ** 12, 30, Number.POSITIVE_INFINITY, true],
    ['as long as it may be in other hands', 100, 30, 100, true],
    ['a second longer than it may be in other hands', 101, 30, 100, false],
  ])('judge an authorization that is good for %s', (_, seconds, least, most, isTaken) => {
    const judged = reason(() => check({ validBefore: BigInt(now + seconds) }, { least, most }));
    expect(judged).toBe(isTaken ? 'accepted' : 'invalid_exact_evm_payload_authorization_valid_before');
  });

  test('pass one that became valid a second ago', () => {
    expect(reason(() => check({ validAfter: BigInt(now - 1) }))).toBe('accepted');
  });

  test('refuse one that has run out, where nothing more is needed than that it is good now', () => {
    const bounds = { least: 0, most: 100 };
    expect(reason(() => check({ validBefore: BigInt(now - 1) }, bounds))).toMatch(/valid_before$/);
    expect(reason(() => check({ validBefore: BigInt(now) }, bounds))).toBe('accepted');
  });

  test('refuse a wallet that is not deployed yet (ERC-6492) by name', () => {
    const payload = payloadOf(signAuthorization(buyer.privateKey, requirement), requirement).payload as {
      signature: string;
    };
    const wrapped = { ...payload, signature: `${payload.signature}${'6492'.repeat(16)}` };
    expect(reason(() => checkAuthorization(decodeEip3009(wrapped), requirement, now, BOUNDS))).toBe(
      'eip6492_factory_not_allowed',
    );
  });
});

describe('the time that an authorization must be good for', () => {
  test.each([
    [10_000, 5000, 21],
    [10_000, 5001, 22],
    [0, 0, 6],
    [1, 0, 7],
  ])(
    'is a handler’s %i ms, a settlement’s %i ms and the SDK’s margin: %i s',
    (handlerTimeoutMs, settleWaitMs, seconds) => {
      expect(neededValidity({ handlerTimeoutMs, settleWaitMs })).toBe(seconds);
    },
  );

  test('is at the most what the official clients sign for and ten minutes, where others hold it', () => {
    expect(MOST_VALIDITY_SECONDS).toBe(604_900 + 600);
  });
});

describe('the hash of an authorization', () => {
  const one = signAuthorization(buyer.privateKey, requirement);
  const contract = hexToBytes(USDC);
  const hashed = (change: Partial<Authorization> = {}, under: Uint8Array = contract) =>
    bytesToHex(hashAuthorization({ ...one, ...change }, under));
  const flipped = (bytes: Uint8Array): Buffer => {
    const copy = Buffer.from(bytes);
    copy[copy.length - 1] = (copy.at(-1) ?? 0) ^ 1;
    return copy;
  };

  test('is the same for the same one, and has 32 bytes', () => {
    expect(hashed()).toBe(hashed());
    expect(hashed()).toMatch(/^0x[0-9a-f]{64}$/);
  });

  test.each<[string, Partial<Authorization>]>([
    ['payer', { from: flipped(one.from) }],
    ['recipient', { to: flipped(one.to) }],
    ['amount', { value: one.value + 1n }],
    ['beginning', { validAfter: one.validAfter + 1n }],
    ['end', { validBefore: one.validBefore + 1n }],
    ['nonce', { nonce: flipped(one.nonce) }],
    ['signature', { signature: flipped(one.signature) }],
    ['longer signature', { signature: Buffer.concat([one.signature, Buffer.from([0])]) }],
  ])('is another one with another %s', (_, change) => {
    expect(hashed(change)).not.toBe(hashed());
  });

  test('is another one for another contract, as is its key in the ledger', () => {
    const other = hexToBytes(requirement.payTo.toLowerCase());
    expect(hashed({}, other)).not.toBe(hashed());
    expect(paymentKey(one, 'eip155:5042', other)).toEqual({
      network: 'eip155:5042',
      contract: other,
      payer: one.from,
      nonce: one.nonce,
    });
  });
});

describe('the accepted requirement', () => {
  const accepted = (change: object) => reason(() => checkAccepted({ ...requirement, ...change }, requirement as never));
  test('is ours, with what a client adds to extra and other letter case in addresses', () => {
    expect(accepted({})).toBe('accepted');
    expect(accepted({ extra: { ...requirement.extra, more: 1 }, payTo: requirement.payTo.toLowerCase() })).toBe(
      'accepted',
    );
  });
  test('may lack decimals, which earlier offers did not have, and may not change them', () => {
    const offered = { ...requirement, extra: { ...requirement.extra, decimals: 6 } };
    const paid = (extra: object) => reason(() => checkAccepted({ ...offered, extra }, offered as never));
    const { decimals: _, ...earlier } = offered.extra;
    expect([paid(earlier), paid(offered.extra)]).toEqual(['accepted', 'accepted']);
    expect(paid({ ...earlier, decimals: 18 })).toBe('No matching payment requirements');
    expect(paid({ decimals: 6 })).toBe('No matching payment requirements');
  });
  test.each([
    ['scheme', { scheme: 'upto' }],
    ['amount', { amount: '1' }],
    ['asset', { asset: requirement.payTo }],
    ['payTo', { payTo: USDC }],
    ['maxTimeoutSeconds', { maxTimeoutSeconds: 60 }],
    ['extra', { extra: { ...requirement.extra, name: 'GatewayWalletBatched' } }],
    ['extra that is no object', { extra: 'USDC' }],
  ])('is refused when its %s is another', (_, change) => {
    expect(accepted(change)).toBe('No matching payment requirements');
  });
  test('is refused by name on another network', () => {
    expect(accepted({ network: 'eip155:8453' })).toBe('invalid_exact_evm_network_mismatch');
  });
});

import { toFunctionSelector } from 'viem';
import { describe, expect, test } from 'vitest';
import {
  CREATION_TOPIC,
  CREATION_TOPICS,
  decodeCreation,
  type EventLog,
  type PoolKind,
} from '../../../src/chain/dex.ts';
import { ASK_SELECTORS, v4PoolId } from '../../../src/chain/dex-ask.ts';
import { bytesToHex } from '../../../src/lib/hex.ts';
import { keccak256 } from '../../../src/lib/secp256k1.ts';

const FACTORY = `0x${'fa'.repeat(20)}` as const;
const POOL = `0x${'c0'.repeat(20)}` as const;
const USDC = '0x3600000000000000000000000000000000000000';
const EURC = '0xbef5f6d51cb62b58e6a8f77868681825c6fe21c1';
const NATIVE = `0x${'0'.repeat(40)}` as const;

const topic = (address: string) => `0x${address.slice(2).padStart(64, '0')}` as const;
const data = (...values: (string | bigint)[]) => {
  const hex = values.map((value) =>
    typeof value === 'string' ? topic(value).slice(2) : BigInt.asUintN(256, value).toString(16).padStart(64, '0'),
  );
  return `0x${hex.join('')}` as const;
};

const EVENTS: Record<Exclude<PoolKind, 'v4'>, EventLog> = {
  v2: { address: FACTORY, topics: [CREATION_TOPIC.v2, topic(USDC), topic(EURC)], data: data(POOL, 1n) },
  v3: {
    address: FACTORY,
    topics: [CREATION_TOPIC.v3, topic(USDC), topic(EURC), data(500n)],
    data: data(10n, POOL),
  },
  slipstream: {
    address: FACTORY,
    topics: [CREATION_TOPIC.slipstream, topic(USDC), topic(EURC), data(50n)],
    data: data(POOL),
  },
};
const ID = `0x${'1d'.repeat(32)}` as const;
const initialize = (currency0: string, hooks: string): EventLog => ({
  address: FACTORY,
  topics: [CREATION_TOPIC.v4, ID, topic(currency0), topic(EURC)],
  data: data(500n, 10n, hooks, 79228162514264337593543950336n, -3n),
});

test('topics and selectors are the hashes of the signatures that they stand for', () => {
  for (const [signature, hash] of Object.entries(CREATION_TOPICS)) {
    expect(bytesToHex(keccak256(Buffer.from(signature)))).toBe(hash);
  }
  for (const [signature, selector] of Object.entries(ASK_SELECTORS)) {
    expect(toFunctionSelector(`function ${signature}`)).toBe(selector);
  }
});

describe('a pool’s creation', () => {
  test.each(Object.entries(EVENTS))('%s: the pool emits its own swaps', (kind, log) => {
    const pool = { kind, id: POOL, emitter: POOL, token0: USDC, token1: EURC };
    expect(decodeCreation(kind as PoolKind, log)).toEqual(pool);
    expect(decodeCreation(kind as PoolKind, { ...log, data: '0x' })).toBeNull();
    expect(decodeCreation(kind as PoolKind, { ...log, topics: log.topics.slice(0, 2) })).toBeNull();
  });

  test.each([USDC, NATIVE])('v4: the pool manager emits the swaps of the id (currency0 %s)', (currency0) => {
    const pool = { kind: 'v4', id: ID, emitter: FACTORY, token0: currency0, token1: EURC };
    expect(decodeCreation('v4', initialize(currency0, NATIVE))).toEqual(pool);
  });

  test('v4: a pool with a hook is accepted unless the hook may change what the swapper pays', () => {
    const hook = (bits: string) => decodeCreation('v4', initialize(USDC, `0x${'ab'.repeat(18)}${bits}`));
    expect(hook('00c0'), 'called before and after a swap').not.toBeNull();
    expect(hook('00c3'), 'amounts of liquidity alone').not.toBeNull();
    expect(hook('0088'), 'amounts before').toBeNull();
    expect(hook('0044'), 'amounts after').toBeNull();
  });

  test('an event of another kind announces no pool', () => {
    expect(decodeCreation('v2', EVENTS.v3)).toBeNull();
    expect(decodeCreation('v3', EVENTS.slipstream)).toBeNull();
    expect(decodeCreation('v4', EVENTS.v2)).toBeNull();
  });
});

test('the id of Arc’s EURC pool follows from its key', () => {
  const key = { currency0: USDC, currency1: EURC, fee: 500, tickSpacing: 10, hooks: NATIVE } as const;
  expect(v4PoolId(key)).toBe('0xeb0fd02fb8044d5514fb6e165ee134fd547eff0378bb33b76f4b81d8b03bd1ae');
  expect(v4PoolId({ ...key, fee: 100, tickSpacing: 1 })).toMatch(/^0xd38a7198.*5ff9$/);
  expect(v4PoolId({ ...key, currency0: NATIVE })).toMatch(/^0x80452212.*cb05$/);
});

import { describe, expect, test } from 'vitest';
import { decodeSwaps, movedToken, SWAP_TOPIC } from '../../../src/chain/dex.ts';

const PEER = `0x${'0'.repeat(24)}${'ab'.repeat(20)}` as const;
const POOL = `0x${'cd'.repeat(20)}` as const;
const ID = `0x${'1d'.repeat(32)}` as const;
const words = (...values: bigint[]) =>
  `0x${values.map((value) => BigInt.asUintN(256, value).toString(16).padStart(64, '0')).join('')}` as const;
const log = (kind: 'v2' | 'v3' | 'v4', values: bigint[], logIndex = 3) => ({
  address: POOL,
  topics: [SWAP_TOPIC[kind], kind === 'v4' ? ID : PEER, PEER],
  data: words(...values),
  logIndex,
});

describe('swaps of a transaction', () => {
  test('are decoded from the pool’s side, v4’s with the pool id, in the order of the logs', () => {
    const swaps = decodeSwaps([
      log('v2', [5n, 0n, 0n, 7n], 1),
      log('v3', [-5n, 7n, 1n, 1n, 1n], 2),
      log('v4', [-5n, 7n, 1n, 1n, 1n, 500n], 4),
    ]);
    expect(swaps).toEqual([
      { family: 'v2', pool: POOL, contract: POOL, amount0: 5n, amount1: -7n, logIndex: 1 },
      { family: 'v3', pool: POOL, contract: POOL, amount0: -5n, amount1: 7n, logIndex: 2 },
      { family: 'v4', pool: ID, contract: POOL, amount0: 5n, amount1: -7n, logIndex: 4 },
    ]);
  });

  test.each([
    ['a loan paid back in both tokens', log('v2', [5n, 5n, 0n, 0n])],
    ['one side alone', log('v2', [5n, 0n, 0n, 0n])],
    ['words that are missing', log('v3', [5n, -7n])],
    ['another event', { ...log('v3', [5n, -7n, 1n, 1n, 1n]), topics: [ID, PEER, PEER] }],
    ['no topic', { ...log('v3', [5n, -7n, 1n, 1n, 1n]), topics: [] }],
  ])('%s is none', (_what, entry) => {
    expect(decodeSwaps([entry])).toEqual([]);
  });
});

describe('the token that moved', () => {
  const [A, B] = [`0x${'aa'.repeat(20)}`, `0x${'bb'.repeat(20)}`] as const;
  const moved = (token: `0x${string}`, from: string, to: string, amount: bigint) => ({
    token,
    from: from as `0x${string}`,
    to: to as `0x${string}`,
    amount,
    logIndex: 0,
  });

  test('is the one of the amount in that direction', () => {
    const transfers = [moved(A, PEER, POOL, 5n), moved(B, POOL, PEER, 5n), moved(B, PEER, POOL, 6n)];
    expect(movedToken(transfers, { to: POOL }, 5n)).toBe(A);
    expect(movedToken(transfers, { from: POOL }, 5n)).toBe(B);
    expect(movedToken([...transfers, moved(A, PEER, POOL, 5n)], { to: POOL }, 5n)).toBe(A);
  });

  test('is unknown when none fits, and when a second token fits as well', () => {
    expect(movedToken([moved(A, PEER, POOL, 5n)], { to: POOL }, 4n)).toBeNull();
    expect(movedToken([moved(A, PEER, POOL, 5n)], { to: PEER }, 5n)).toBeNull();
    expect(movedToken([moved(A, PEER, POOL, 5n), moved(B, PEER, POOL, 5n)], { to: POOL }, 5n)).toBeNull();
  });
});

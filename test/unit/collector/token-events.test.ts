import { describe, expect, test } from 'vitest';
import type { BlockLog } from '../../../src/chain/block.ts';
import { TRANSFER_TOPIC } from '../../../src/chain/contracts.ts';
import { ARC_SYSTEM_ADDRESS } from '../../../src/chain/erc20.ts';
import type { WatchList } from '../../../src/collector/scanner.ts';
import { createTokenEventScanner } from '../../../src/collector/tokens.ts';
import { bytesToHex } from '../../../src/lib/hex.ts';

type Hex = `0x${string}`;
const repeat = (byte: string): Hex => `0x${byte.repeat(20)}`;
const [TOKEN, USDC, DISTRIBUTOR, ALICE, BOB] = ['70', '36', 'd1', 'a1', 'b0'].map(repeat) as [Hex, Hex, Hex, Hex, Hex];
const ZERO = repeat('00');
const DEAD: Hex = '0x000000000000000000000000000000000000dead';
const WATCH: WatchList = {
  tokens: [],
  venues: [],
  usdc: USDC,
  projectToken: TOKEN,
  distributor: DISTRIBUTOR,
  burnAddresses: [ZERO, DEAD],
  dustE9: 0n,
  outlierPercent: 20,
};

const topic = (address: string): Hex => `0x${address.slice(2).padStart(64, '0')}`;
let next = 0;
const transfer = (emitter: Hex, from: Hex, to: Hex, amount: bigint, transaction = next): BlockLog => ({
  block: 7,
  at: 1000,
  logIndex: next++,
  transactionHash: topic(`0x${transaction.toString(16)}`),
  address: emitter,
  topics: [TRANSFER_TOPIC, topic(from), topic(to)],
  data: topic(`0x${amount.toString(16)}`),
});
const scan = (logs: BlockLog[], watch = WATCH) =>
  (createTokenEventScanner(watch).scan({ from: 7, to: 7, logs }).tokenEvents ?? []).map(
    ({ kind, account, amount }) => `${kind} ${bytesToHex(account)} ${amount}`,
  );

describe('burns', () => {
  test('are transfers to a burn address', () => {
    expect(scan([transfer(TOKEN, ALICE, ZERO, 5n), transfer(TOKEN, BOB, DEAD, 6n)])).toEqual([
      `burn ${ALICE} 5`,
      `burn ${BOB} 6`,
    ]);
  });

  test('are not: other transfers, a mint to a burn address, a transfer between burn addresses, a zero amount, another token', () => {
    expect(
      scan([
        transfer(TOKEN, ALICE, BOB, 5n),
        transfer(TOKEN, ZERO, DEAD, 5n),
        transfer(TOKEN, DEAD, ZERO, 5n),
        transfer(TOKEN, ALICE, DEAD, 0n),
        transfer(ALICE, ALICE, DEAD, 5n),
        transfer(USDC, ALICE, DEAD, 5n),
      ]),
    ).toEqual([]);
  });

  test('are not: a mint to a burn address, also when the zero address is no burn address', () => {
    const watch = { ...WATCH, burnAddresses: [DEAD] };
    expect(scan([transfer(TOKEN, ZERO, DEAD, 5n), transfer(TOKEN, ALICE, ZERO, 6n)], watch)).toEqual([]);
    expect(scan([transfer(TOKEN, ALICE, DEAD, 5n)], watch)).toHaveLength(1);
  });

  test('of a collection (four topics) are none', () => {
    const log = transfer(TOKEN, ALICE, DEAD, 5n);
    expect(scan([{ ...log, topics: [...log.topics, topic('0x01')] }])).toEqual([]);
  });
});

describe('payouts', () => {
  const NATIVE = 10n ** 12n;

  test('through the contract have two logs on Arc and count once', () => {
    const logs = [
      transfer(ARC_SYSTEM_ADDRESS, DISTRIBUTOR, ALICE, 5n * NATIVE, 900),
      transfer(USDC, DISTRIBUTOR, ALICE, 5n, 900),
    ];
    expect(scan(logs)).toEqual([`payout ${ALICE} 5`]);
    expect(scan(logs.slice(1)), 'a chain without the system’s log').toEqual([`payout ${ALICE} 5`]);
  });

  test('in the native currency have the system’s log only, and count in the contract’s units', () => {
    expect(scan([transfer(ARC_SYSTEM_ADDRESS, DISTRIBUTOR, BOB, 7n * NATIVE + 1n)])).toEqual([`payout ${BOB} 7`]);
    expect(scan([transfer(ARC_SYSTEM_ADDRESS, DISTRIBUTOR, BOB, NATIVE - 1n)])).toEqual([]);
  });

  test('of the same amount, one natively and one through the contract, in different transactions are two', () => {
    const logs = [
      transfer(ARC_SYSTEM_ADDRESS, DISTRIBUTOR, ALICE, 5n * NATIVE, 901),
      transfer(USDC, DISTRIBUTOR, ALICE, 5n, 902),
    ];
    expect(scan(logs)).toEqual([`payout ${ALICE} 5`, `payout ${ALICE} 5`]);
  });

  test('are not: to itself, from others, of other tokens', () => {
    expect(
      scan([
        transfer(USDC, DISTRIBUTOR, DISTRIBUTOR, 5n),
        transfer(USDC, ALICE, DISTRIBUTOR, 5n),
        transfer(USDC, ALICE, BOB, 5n),
        transfer(TOKEN, DISTRIBUTOR, BOB, 5n),
        transfer(BOB, DISTRIBUTOR, ALICE, 5n),
      ]),
    ).toEqual([]);
  });
});

test('without a project token and a distributor nothing is asked for and nothing found', () => {
  const none = { ...WATCH, projectToken: null, distributor: null };
  expect(createTokenEventScanner(none).filters()).toEqual([]);
  expect(scan([transfer(TOKEN, ALICE, DEAD, 5n), transfer(USDC, DISTRIBUTOR, ALICE, 5n)], none)).toEqual([]);
});

test('asks for the token’s transfers to burn addresses, and for the distributor’s USDC transfers, native and through the contract', () => {
  expect(createTokenEventScanner(WATCH).filters()).toEqual([
    { addresses: [TOKEN], topics: [TRANSFER_TOPIC, null, [topic(ZERO), topic(DEAD)]] },
    { addresses: [USDC, ARC_SYSTEM_ADDRESS], topics: [TRANSFER_TOPIC, topic(DISTRIBUTOR)] },
  ]);
});

import { expect, test } from 'vitest';
import { TRANSFER_TOPIC } from '../../../src/chain/contracts.ts';
import { ARC_SYSTEM_ADDRESS, decodeTransfers } from '../../../src/chain/erc20.ts';
import type { Log } from '../../../src/chain/transaction.ts';

const USDC = '0x3600000000000000000000000000000000000000';
const TOKEN = '0x00000000000000000000000000000000000000aa';
const [A, B, C] = ['a1', 'b2', 'c3'].map((end) => `0x${end.padStart(40, '0')}`) as [string, string, string];
const ZERO = `0x${'0'.repeat(40)}`;
const NATIVE = 10n ** 12n;

let logIndex = 0;
const topicOf = (address: string) => `0x${address.slice(2).padStart(64, '0')}` as const;
const wordOf = (value: bigint) => `0x${value.toString(16).padStart(64, '0')}` as const;
function log(address: string, from: string, to: string, value: bigint, over: Partial<Log> = {}): Log {
  const topics = [TRANSFER_TOPIC, topicOf(from), topicOf(to)] as Log['topics'];
  return { address: address as `0x${string}`, topics, data: wordOf(value), logIndex: logIndex++, ...over };
}
const system = (from: string, to: string, value: bigint) => log(ARC_SYSTEM_ADDRESS, from, to, value);
const usdc = (from: string, to: string, value: bigint) => log(USDC, from, to, value);
const seen = (logs: Log[]) => decodeTransfers(logs, USDC).map(({ token, amount, logIndex: at }) => [token, amount, at]);

test('a movement through the USDC contract is reported once, from the token’s own log', () => {
  const logs = [system(A, B, 5n * NATIVE), usdc(A, B, 5n)];
  expect(decodeTransfers(logs, USDC)).toEqual([
    { token: USDC, from: A, to: B, amount: 5n, logIndex: logs[1]!.logIndex },
  ]);
});

test('with another log between the two (AuthorizationUsed, say) it is still one', () => {
  const other = log(USDC, A, B, 5n, { topics: [`0x${'98'.repeat(32)}`, topicOf(A), topicOf(B)] });
  expect(seen([system(A, B, 5n * NATIVE), other, usdc(A, B, 5n)])).toHaveLength(1);
});

test('a native send alone is reported once, from the system address', () => {
  const logs = [system(A, B, 5n * NATIVE + 1n)];
  expect(seen(logs)).toEqual([[ARC_SYSTEM_ADDRESS, 5n * NATIVE + 1n, logs[0]!.logIndex]]);
});

test('a native send and a token movement of the same amount are two transfers', () => {
  const logs = [system(A, B, 5n * NATIVE), system(A, B, 5n * NATIVE), usdc(A, B, 5n)];
  expect(seen(logs)).toEqual([
    [ARC_SYSTEM_ADDRESS, 5n * NATIVE, logs[0]!.logIndex],
    [USDC, 5n, logs[2]!.logIndex],
  ]);
});

test('two equal token movements with their system logs are two transfers', () => {
  const logs = [system(A, B, 5n * NATIVE), usdc(A, B, 5n), system(A, B, 5n * NATIVE), usdc(A, B, 5n)];
  expect(seen(logs).map(([token]) => token)).toEqual([USDC, USDC]);
});

test.each([
  ['other value', [system(A, B, 5n * NATIVE + 1n), usdc(A, B, 5n)]],
  ['other recipient', [system(A, C, 5n * NATIVE), usdc(A, B, 5n)]],
  ['other sender', [system(C, B, 5n * NATIVE), usdc(A, B, 5n)]],
  ['token first', [usdc(A, B, 5n), system(A, B, 5n * NATIVE)]],
  ['another token of 6 decimals', [system(A, B, 5n * NATIVE), log(TOKEN, A, B, 5n)]],
])('%s: the two logs are no pair, so both are reported', (_what, logs) => {
  expect(seen(logs)).toHaveLength(2);
});

test('mint and burn through the contract are one movement each; a zero transfer has no system log and is reported', () => {
  const logs = [
    system(ZERO, A, 7n * NATIVE),
    usdc(ZERO, A, 7n),
    system(A, ZERO, 7n * NATIVE),
    usdc(A, ZERO, 7n),
    usdc(A, B, 0n),
  ];
  expect(seen(logs)).toEqual([
    [USDC, 7n, logs[1]!.logIndex],
    [USDC, 7n, logs[3]!.logIndex],
    [USDC, 0n, logs[4]!.logIndex],
  ]);
});

test('the USDC address may be configured in any letter case', () => {
  const mixed = '0xABcdef0000000000000000000000000000000001';
  const logs = [system(A, B, NATIVE), log(mixed.toLowerCase(), A, B, 1n)];
  expect(decodeTransfers(logs, mixed)).toHaveLength(1);
});

test('ERC-721 transfers, other events, data of another length and topics that are no address are left out', () => {
  const dirty = `0x1${'0'.repeat(63)}` as const;
  const logs = [
    log(TOKEN, A, B, 1n, { topics: [TRANSFER_TOPIC, topicOf(A), topicOf(B), wordOf(9n)] }),
    log(TOKEN, A, B, 1n, { topics: [TRANSFER_TOPIC] }),
    log(TOKEN, A, B, 1n, { topics: [] }),
    log(TOKEN, A, B, 1n, { data: '0x' }),
    log(TOKEN, A, B, 1n, { data: `${wordOf(1n)}00` }),
    log(TOKEN, A, B, 1n, { topics: [TRANSFER_TOPIC, dirty, topicOf(B)] }),
    log(TOKEN, A, B, 1n, { topics: [`0x${'11'.repeat(32)}`, topicOf(A), topicOf(B)] }),
  ];
  expect(seen([...logs, log(TOKEN, A, B, 1n)])).toHaveLength(1);
});

import { hash as digest } from 'node:crypto';

export type Hex = `0x${string}`;

/** Arc's addresses and topics, from its documentation. */
export const SYSTEM = '0xfffffffffffffffffffffffffffffffffffffffe';
export const USDC = '0x3600000000000000000000000000000000000000';
export const POOL_MANAGER = '0x00000000000000000000000000000000000c0de4';
export const POOL_ID = `0x${'eb'.repeat(32)}` as const;
export const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';
export const V4_SWAP = '0x40e9cecb9f5f1f1c5b9c97dec2917b7ee92e57ba5563708daca94dd84ad7112f';

/** A log before it has a place in its block. */
export interface SimLog {
  readonly address: Hex;
  readonly topics: readonly Hex[];
  readonly data: Hex;
}

/** What one transaction of the simulated chain is and does. */
export interface SimTransaction {
  readonly hash: Hex;
  readonly from: Hex;
  readonly to: Hex | null;
  readonly input: Hex;
  readonly value: bigint;
  readonly gasUsed: number;
  readonly ok: boolean;
  readonly created: Hex | null;
  readonly logs: readonly SimLog[];
}

export const hash = (...parts: (string | number)[]): Hex => `0x${digest('sha256', parts.join('/'))}`;
export const hex = (value: number | bigint): Hex => `0x${value.toString(16)}`;
export const word = (value: bigint): Hex => `0x${BigInt.asUintN(256, value).toString(16).padStart(64, '0')}`;
const topicOf = (address: Hex): Hex => `0x${address.slice(2).padStart(64, '0')}`;
const accountOf = (random: () => number): Hex =>
  `0x${Math.floor(random() * 5000 + 1)
    .toString(16)
    .padStart(40, 'a')}`;

/** The code of a contract follows from its address, so that every node agrees; some are copies of one another. */
export function codeOf(address: Hex): Hex {
  const kind = Number.parseInt(address.slice(-2), 16) % 16;
  return kind === 0 ? '0x' : `0x${'60'.repeat(20 + kind)}`;
}

/** Shares of the traffic: a fifth native sends, a third USDC transfers, a third swaps, the rest calls and now and then a deploy (one in five fails). */
export function makeTransaction(id: string, random: () => number): SimTransaction {
  const kind = random();
  const from = accountOf(random);
  const to = accountOf(random);
  const amount = BigInt(Math.floor(random() * 1e6) + 1);
  const base = { hash: hash('tx', id), from, value: 0n, ok: true, created: null };
  const system: SimLog = {
    address: SYSTEM,
    topics: [TRANSFER, topicOf(from), topicOf(to)],
    data: word(amount * 10n ** 12n),
  };
  if (kind < 0.2) {
    return { ...base, to, input: '0x', value: amount * 10n ** 12n, gasUsed: 21_000, logs: from === to ? [] : [system] };
  }
  if (kind < 0.55) {
    const own: SimLog = { ...system, address: USDC, data: word(amount) };
    const input: Hex = `0xa9059cbb${topicOf(to).slice(2)}${word(amount).slice(2)}`;
    return { ...base, to: USDC, input, gasUsed: 51_000, logs: [system, own] };
  }
  if (kind < 0.88)
    return { ...base, to: POOL_MANAGER, input: '0x3593564c', gasUsed: 140_000, logs: swapLogs(from, amount, random) };
  if (kind < 0.97) return { ...base, to, input: '0x12345678', gasUsed: 90_000, logs: [] };
  const ok = random() > 0.2;
  const created = ok ? (`0x${hash('contract', id).slice(2, 42)}` as const) : null;
  return { ...base, ok, to: null, input: '0x6080', gasUsed: 900_000, created, logs: [] };
}

/** A v4 swap of the EURC pool among swaps of others: amounts are the swapper's, so one of them is negative. */
function swapLogs(sender: Hex, amount: bigint, random: () => number): SimLog[] {
  const pool = random() < 0.5 ? POOL_ID : hash('pool', Math.floor(random() * 50));
  const eurc = (amount * 860n) / 1000n + 1n;
  const amounts = random() < 0.5 ? [-amount, eurc] : [amount, -eurc];
  const rest = [2n ** 96n, 10n ** 12n, 0n, 500n];
  const data: Hex = `0x${[...amounts, ...rest].map((value) => word(value).slice(2)).join('')}`;
  return [{ address: POOL_MANAGER, topics: [V4_SWAP, pool, topicOf(sender)], data }];
}

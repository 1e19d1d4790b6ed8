import { encodeAbiParameters, type Hex, keccak256, pad, parseTransaction, toHex } from 'viem';
import { BATCH_SETTLEMENT, USDC } from '../../../dev/contracts.ts';
import { bytesToHex, hexToBytes } from '../../../src/lib/hex.ts';
import { claimedRows } from '../../../src/payment/channels/calldata.ts';
import type { Authorization } from '../../../src/payment/settler.ts';
import { AUTHORIZATION_CANCELED, AUTHORIZATION_USED, TRANSFER } from '../../../src/payment/usdc/token.ts';
import type { ChannelConfig } from '../../../src/store/ports/channel-state.ts';
import type { AskedReceipt, Lie, ShownLog, ShownReceipt, TrueBlock } from './lying-provider.ts';

// What one lying provider says. Each lie agrees with itself: receipts, logs, and the storage that calls read.

/** An authorization as lies need it. `mark`: 32 bytes of the calldata that uses it, by default its nonce. */
export interface Terms extends Pick<Authorization, 'from' | 'to' | 'value' | 'nonce' | 'passedTo'> {
  readonly mark?: Uint8Array;
}

/** Hex digits by which a transaction with this payment is known. */
export const markOf = ({ nonce, mark = nonce }: Terms): string => bytesToHex(mark).slice(2);

const topic = (bytes: Uint8Array): Hex => pad(bytesToHex(bytes) as Hex);
const word = (value: bigint): Hex => pad(toHex(value));

/** The slot of a mapping's member. Nested mappings have the outer slot as their place. */
const slotOf = (key: Hex, place: Hex): Hex =>
  keccak256(encodeAbiParameters([{ type: 'bytes32' }, { type: 'bytes32' }], [pad(key), pad(place)]));

// Storage places of Usdc.sol and BatchSettlement.sol, in the order in which they declare them.
const [BALANCES, STATES]: Hex[] = ['0x00', '0x03'];
const [CHANNELS, WITHDRAWALS]: Hex[] = ['0x00', '0x01'];

/** The slot of an account's USDC. */
export const balanceSlot = (account: Uint8Array): Hex => slotOf(bytesToHex(account) as Hex, BALANCES as Hex);
const stateSlot = ({ from, nonce }: Terms): Hex =>
  slotOf(bytesToHex(nonce) as Hex, slotOf(bytesToHex(from) as Hex, STATES as Hex));

/** Storage in which an account holds this much USDC, in base units. */
const holding = (account: Uint8Array, units: bigint) => ({ [USDC]: { [balanceSlot(account)]: word(units) } });
/** Storage in which an authorization is used, or not. */
const usedOrNot = (terms: Terms, isUsed: boolean) => ({ [USDC]: { [stateSlot(terms)]: word(isUsed ? 1n : 0n) } });

/** The logs of a transaction that pays: of a deposit, also those that pass its money on. */
function paymentLogs({ from, to, value, nonce, passedTo }: Terms): ShownLog[] {
  const transfer = (sender: Uint8Array, recipient: Uint8Array): ShownLog => ({
    address: USDC,
    topics: [TRANSFER, topic(sender), topic(recipient)],
    data: word(value),
  });
  const used = { address: USDC, topics: [AUTHORIZATION_USED, topic(from), topic(nonce)], data: '0x' };
  return [used, transfer(from, to), ...(passedTo ? [transfer(to, passedTo)] : [])];
}

/** Logs where they stand in the chain. */
const standing = (logs: readonly ShownLog[], hash: string, { number, hash: blockHash }: TrueBlock) =>
  logs.map((log, at) => ({
    ...log,
    blockNumber: number,
    blockHash,
    transactionHash: hash,
    transactionIndex: '0x0',
    logIndex: toHex(at),
    removed: false,
  }));

/** A receipt of success with these logs, in the true transaction's block where it has one. */
function successOf({ hash, truth, block }: AskedReceipt, logs: readonly ShownLog[]): ShownReceipt {
  const place = truth ? { number: truth.blockNumber, hash: truth.blockHash } : block;
  const invented = {
    transactionIndex: '0x0',
    from: pad('0x01', { size: 20 }),
    to: USDC,
    contractAddress: null,
    cumulativeGasUsed: '0x15f90',
    gasUsed: '0x15f90',
    effectiveGasPrice: '0x4a817c800',
    logsBloom: pad('0x', { size: 256 }),
    type: '0x2',
  };
  return {
    ...invented,
    ...truth,
    transactionHash: hash,
    blockNumber: place.number,
    blockHash: place.hash,
    status: '0x1',
    logs: standing(logs, hash, place),
  };
}

/** Whether a transaction is the one that carries the payment. One that nobody has seen may be any. */
const carries = ({ raw, truth }: AskedReceipt, terms: Terms): boolean =>
  raw === null ? truth === null : raw.includes(markOf(terms));

/** Each transaction with this payment was mined and paid. */
export function inventedPayment(terms: Terms, more: Lie = {}): Lie {
  let isTold = false;
  return {
    ...more,
    receipt: (asked) => {
      if (!carries(asked, terms)) return asked.truth;
      isTold = true;
      return successOf(asked, paymentLogs(terms));
    },
    storage: () => merged(more.storage?.() ?? {}, isTold ? usedOrNot(terms, true) : {}),
  };
}

/** A payer has this much USDC, in base units. */
export const inventedBalance = (account: Uint8Array, units: bigint): Lie => ({
  storage: () => holding(account, units),
});

/** The payment's transaction was mined and has reverted, and its authorization is unused. */
export const deniedPayment = (terms: Terms): Lie => ({
  receipt: (asked) =>
    asked.truth && carries(asked, terms) ? { ...asked.truth, status: '0x0', logs: [] } : asked.truth,
  logs: (_, truth) => truth.filter((log) => !JSON.stringify(log).includes(topic(terms.nonce).slice(2))),
  storage: () => usedOrNot(terms, false),
});

/** Hash of a transaction that never was, for one authorization. */
const neverWas = ({ nonce }: Terms): Hex => keccak256(bytesToHex(nonce) as Hex);

/**
 * The authorization is used, and the logs name a transaction that did it: it paid, or it cancelled the authorization.
 */
export function inventedLogs(terms: Terms, how: 'paid' | 'cancelled'): Lie {
  const hash = neverWas(terms);
  const canceled = {
    address: USDC,
    topics: [AUTHORIZATION_CANCELED, topic(terms.from), topic(terms.nonce)],
    data: '0x',
  };
  const logs = how === 'paid' ? paymentLogs(terms) : [canceled];
  return {
    receipt: (asked) => {
      if (asked.hash === hash) return successOf(asked, logs);
      return asked.truth && carries(asked, terms) ? { ...asked.truth, status: '0x0', logs: [] } : asked.truth;
    },
    logs: (filter, truth, block) => {
      if (!JSON.stringify(filter).includes(topic(terms.nonce).slice(2))) return truth;
      const isInRange =
        Number(filter.fromBlock) <= Number(block.number) && Number(block.number) <= Number(filter.toBlock);
      return isInRange ? standing(logs.slice(0, 1), hash, block) : [];
    },
    storage: () => usedOrNot(terms, true),
  };
}

/** The chain's time is past the authorization's, which is unused. */
export const expired = (terms: Terms): Lie => ({
  ...deniedPayment(terms),
  receipt: (asked) => (carries(asked, terms) ? null : asked.truth),
  secondsAhead: 30 * 86_400,
});

/** Blocks of two minutes on Arc. */
export const BEHIND_BLOCKS = 240;
/** Two minutes behind. */
export const behind: Lie = { head: (truth) => truth - BEHIND_BLOCKS };
/** An hour ahead, by Arc's blocks. */
export const hourAhead: Lie = { head: (truth) => truth + 7200 };
/** At a block that no chain reaches. */
export const farAhead: Lie = { head: () => 2 ** 52 };

/** A channel as the settlement contract has it, in base units. */
export interface ChannelSaid {
  readonly balance: bigint;
  readonly totalClaimed?: bigint;
  /** A pending withdrawal, asked for at this Unix second. */
  readonly withdrawal?: { readonly amount: bigint; readonly at: number };
}

/** A channel is so. `withdrawal` is as it is told, so a lie without one hides any. */
export function channelIs(id: Uint8Array, { balance, totalClaimed = 0n, withdrawal }: ChannelSaid): Lie {
  const [channel, pending] = [CHANNELS, WITHDRAWALS].map((place) => slotOf(bytesToHex(id) as Hex, place as Hex));
  const told = withdrawal ? (BigInt(withdrawal.at) << 128n) | withdrawal.amount : 0n;
  const slots = { [channel as Hex]: word((totalClaimed << 128n) | balance), [pending as Hex]: word(told) };
  return { storage: () => ({ [BATCH_SETTLEMENT]: slots }) };
}

/** keccak256 of `WithdrawInitiated(bytes32,uint128,uint40)`. */
const WITHDRAW_INITIATED = '0xe4280d0d903c7f258f62b07c62f262377cbaa23f7791d78126e6446e0f0e3c23';

/** Nobody has asked for money of this channel. */
export const hiddenWithdrawal = (id: Uint8Array, balance: bigint): Lie => ({
  ...channelIs(id, { balance }),
  logs: (_, truth) => truth.filter((log) => !JSON.stringify(log).includes(WITHDRAW_INITIATED)),
});

/** The channel's payer has asked for all of it. */
export function inventedWithdrawal(id: Uint8Array, balance: bigint): Lie {
  const at = Math.floor(Date.now() / 1000);
  const log = {
    address: BATCH_SETTLEMENT.toLowerCase(),
    topics: [WITHDRAW_INITIATED, bytesToHex(id)],
    data: `${word(balance)}${word(BigInt(at)).slice(2)}`,
  };
  return {
    ...channelIs(id, { balance, withdrawal: { amount: balance, at } }),
    logs: (filter, truth, block) => {
      const isAsked = JSON.stringify(filter).includes(WITHDRAW_INITIATED);
      return isAsked ? [...truth, ...standing([log], keccak256(bytesToHex(id) as Hex), block)] : truth;
    },
  };
}

/** keccak256 of `Claimed(bytes32,address,uint128,uint128)` and of `Refunded(bytes32,address,uint128)`. */
export const CLAIMED = '0x36bd546bb573e8921fdbfd934bbed62d872796b01792cd240cce27f79dd3eddd';
const REFUNDED = keccak256(toHex('Refunded(bytes32,address,uint128)'));

const channelLog = (event: string, id: Uint8Array, amounts: readonly bigint[]): ShownLog => ({
  address: BATCH_SETTLEMENT.toLowerCase(),
  topics: [event, bytesToHex(id), pad('0x01')],
  data: `0x${amounts.map((amount) => word(amount).slice(2)).join('')}`,
});

/** Calldata of a transaction as the service has signed it. */
const calldataIn = (raw: string): Uint8Array => hexToBytes(parseTransaction(raw as Hex).data ?? '0x');

/** What a transaction records in all for the channel with this salt; null when it claims nothing there. */
export function claimedBy(raw: string, salt: Uint8Array): bigint | null {
  if (!raw.includes(bytesToHex(salt).slice(2))) return null;
  const rows = claimedRows(calldataIn(raw)).filter(({ config }) => bytesToHex(config.salt) === bytesToHex(salt));
  return rows[0]?.totalClaimed ?? null;
}

/** Each claim of the channel is kept back, and was mined. */
export function inventedClaim(id: Uint8Array, { salt }: Pick<ChannelConfig, 'salt'>, balance: bigint): Lie {
  let total = 0n;
  return {
    swallows: true,
    receipt: (asked) => {
      const claimed = asked.raw === null ? null : claimedBy(asked.raw, salt);
      if (claimed === null) return asked.truth;
      const amount = claimed > total ? claimed - total : claimed;
      total = claimed;
      return successOf(asked, [channelLog(CLAIMED, id, [amount, total])]);
    },
    storage: () => channelIs(id, { balance, totalClaimed: total }).storage?.() ?? {},
  };
}

/** Each refund of the channel is kept back, and was mined. */
export function inventedRefund(
  id: Uint8Array,
  { salt }: Pick<ChannelConfig, 'salt'>,
  { charged, deposit }: { charged: bigint; deposit: bigint },
): Lie {
  const mark = bytesToHex(salt).slice(2);
  let isTold = false;
  const nonceSlot = slotOf(bytesToHex(id) as Hex, '0x02');
  return {
    swallows: true,
    receipt: (asked) => {
      if (!asked.raw?.includes(mark)) return asked.truth;
      isTold = true;
      const claim = channelLog(CLAIMED, id, [charged, charged]);
      return successOf(asked, [claim, channelLog(REFUNDED, id, [deposit - charged])]);
    },
    storage: () =>
      isTold
        ? merged(channelIs(id, { balance: charged, totalClaimed: charged }).storage?.() ?? {}, {
            [BATCH_SETTLEMENT]: { [nonceSlot]: word(1n) },
          })
        : {},
  };
}

/** A transaction with these bytes was mined and did nothing. */
export function deniedCall(mark: Uint8Array): Lie {
  const isIts = ({ raw }: AskedReceipt): boolean => raw?.includes(bytesToHex(mark).slice(2)) ?? false;
  return { receipt: (asked) => (asked.truth && isIts(asked) ? { ...asked.truth, logs: [] } : asked.truth) };
}

/** Several lies at once, where they speak of different things. Of two receipts or logs, the later one is told. */
export function together(...lies: readonly Lie[]): Lie {
  return {
    ...Object.assign({}, ...lies),
    storage: () => merged(...lies.map(({ storage }) => storage?.() ?? {})),
  };
}

type Storage = ReturnType<NonNullable<Lie['storage']>>;

function merged(...storages: readonly Storage[]): Storage {
  const all: Storage = {};
  for (const storage of storages)
    for (const [address, slots] of Object.entries(storage)) all[address] = { ...all[address], ...slots };
  return all;
}

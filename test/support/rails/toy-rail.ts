import { randomBytes } from 'node:crypto';
import type { PaymentRequirements } from '@x402/core/types';
import { bytesToHex, hexToBytes } from '../../../src/lib/hex.ts';
import { type Authorization, paymentKey } from '../../../src/payment/authorization.ts';
import { hashAuthorization } from '../../../src/payment/evm/eip3009.ts';
import type { Ledger } from '../../../src/payment/ledger.ts';
import type { PurchaseRail } from '../../../src/payment/rail.ts';
import { PaymentRefused } from '../../../src/payment/refusal.ts';
import { type Intent, type Outcome, REVERTED, type SettlingRail, type Verdict } from '../../../src/payment/settler.ts';
import type { ToyPayment } from './toy-bank.ts';

const CONTRACT = Buffer.alloc(20, 0x70);
export const TOY_NETWORK = 'eip155:5042';
/** In milliseconds. A settlement without an answer in this time is unknown. */
const TIMEOUT_MS = 1000;

/** The requirement of a call over the toy rail. */
export function toyRequirement(amount: string): PaymentRequirements {
  return {
    ...{ scheme: 'toy', network: TOY_NETWORK, amount, asset: 'TOY', payTo: `0x${'5e'.repeat(20)}` },
    ...{ maxTimeoutSeconds: 60, extra: {} },
  };
}

/** The bank's answer about a payment. */
interface Known {
  readonly isSigned: boolean;
  readonly balance: string;
  readonly transfer: { readonly transaction: `0x${string}`; readonly value: string } | null;
}

/** A rail whose money is with a bank that is reached over HTTP. It is an example of the members that a rail must have. */
export function createToyRail(bankUrl: string, ledger: () => Pick<Ledger, 'openBefore' | 'noteBroadcast'>) {
  async function ask<T>(path: string, authorization: Authorization, transaction?: Uint8Array): Promise<T> {
    const body = JSON.stringify({
      payment: textOf(authorization),
      ...(transaction && { transaction: bytesToHex(transaction) }),
    });
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    return (await (await fetch(bankUrl + path, { method: 'POST', body, signal })).json()) as T;
  }

  async function move({ id, authorization }: Intent): Promise<Outcome> {
    // The transaction is on disk before the bank gets it. From then on only the evidence ends the sale.
    const transaction = randomBytes(32);
    if (!(await ledger().noteBroadcast([{ id, transaction }])).has(id)) return { kind: 'unknown' };
    const moved = await ask<Known['transfer'] & { refused?: true }>('/move', authorization, transaction);
    return moved.refused ? { kind: 'failed', reason: REVERTED } : settledBy(moved);
  }

  const lookup = async (authorization: Authorization): Promise<Verdict> => {
    const { transfer } = await ask<Known>('/known', authorization);
    return transfer ? settledBy(transfer) : { kind: 'open' };
  };
  const unknown = (): { kind: 'unknown' } => ({ kind: 'unknown' });

  const purchase: PurchaseRail = {
    contract: CONTRACT,
    status: { unavailable: () => null },
    requirement: ({ amount }) => toyRequirement(amount),
    read: (payload) => {
      const authorization = read(payload);
      return { authorization, authorizationHash: hashAuthorization(authorization, CONTRACT) };
    },
    checkAccepted: (accepted, { scheme, network, amount }) => {
      if (accepted.scheme !== scheme || accepted.network !== network || accepted.amount !== amount)
        throw new PaymentRefused('No matching payment requirements');
    },
    checkAuthorization: ({ value, validBefore }, { amount }, now) => {
      if (value !== BigInt(amount)) throw new PaymentRefused('toy_wrong_amount');
      if (validBefore <= BigInt(now)) throw new PaymentRefused('toy_expired');
    },
    checkSignature: async (authorization) => {
      const { isSigned } = await ask<Known>('/known', authorization);
      if (!isSigned) throw new PaymentRefused('toy_signature');
      return null;
    },
    review: (authorization) => lookup(authorization).catch(unknown),
    look: async (authorization) => {
      const { balance, transfer } = await ask<Known>('/known', authorization);
      if (BigInt(balance) < authorization.value) throw new PaymentRefused('toy_insufficient_balance');
      return { used: transfer !== null, balance: BigInt(balance), hasCode: false, block: 0 };
    },
    verify: async (id, authorization, { balance }) => {
      const promised = await ledger().openBefore(paymentKey(authorization, TOY_NETWORK, CONTRACT), id);
      if (balance < authorization.value + promised) throw new PaymentRefused('toy_insufficient_balance');
      return { checkedBlock: 0, hasCode: false };
    },
  };
  const settling: SettlingRail = {
    settler: {
      settle: (intents) => intents.map((intent) => move(intent).catch(unknown)),
      unavailable: () => null,
      stop: async () => {},
    },
    evidence: { lookup: (authorization) => lookup(authorization).catch(unknown) },
    ownOnly: false,
  };
  return { purchase, settling };
}

function settledBy({ transaction, value }: NonNullable<Known['transfer']>): Outcome {
  return { kind: 'settled', transaction: hexToBytes(transaction), block: 1, paid: BigInt(value) };
}

function read(payload: Readonly<Record<string, unknown>>): Authorization {
  const bytes = (name: string) => hexToBytes(String(payload[name]) as `0x${string}`);
  const number = (name: string) => BigInt(String(payload[name]));
  const numbers = { value: number('value'), validAfter: number('validAfter'), validBefore: number('validBefore') };
  return { from: bytes('from'), to: bytes('to'), ...numbers, nonce: bytes('nonce'), signature: bytes('signature') };
}

function textOf({ from, to, nonce, signature, value, validAfter, validBefore }: Authorization): ToyPayment {
  const numbers = { value: String(value), validAfter: String(validAfter), validBefore: String(validBefore) };
  const bytes = { from: bytesToHex(from), to: bytesToHex(to), nonce: bytesToHex(nonce) };
  return { ...bytes, ...numbers, signature: bytesToHex(signature) };
}

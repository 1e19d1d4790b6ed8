import { randomBytes } from 'node:crypto';
import type { PaymentRequirements } from '@x402/core/types';
import { bytesToHex, hexToBytes } from '../../../src/lib/hex.ts';
import type { Accepted, Credential } from '../../../src/payment/protocol.ts';
import type { RailInfo, SignedScheme, UsdcCall } from '../../../src/payment/rail.ts';
import { plainReceipt } from '../../../src/payment/receipt.ts';
import { PaymentRefused } from '../../../src/payment/refusal.ts';
import { sellSigned } from '../../../src/payment/sale.ts';
import {
  type Authorization,
  type Found,
  type Intent,
  type Outcome,
  REVERTED,
  type Settler,
  type SettlerContext,
  type SettlerStatus,
} from '../../../src/payment/settler.ts';
import { hashAuthorization } from '../../../src/payment/usdc/authorization.ts';
import type { RailKit, RailModule } from '../../../src/wiring/rails.ts';
import type { ToyPayment } from './toy-bank.ts';

const CONTRACT = Buffer.alloc(20, 0x70);
const SCHEME = 'toy';
/** In milliseconds. A settlement without an answer in this time is unknown. A buyer is told so sooner, when SETTLE_WAIT_MS are over. */
const TIMEOUT_MS = 20_000;

/** Makes this rail's entry in a 402 from the plain entry. */
const requirementFrom = (plain: PaymentRequirements) => ({ ...plain, scheme: SCHEME, asset: 'TOY', extra: {} });

/** The bank's answer about a payment. */
interface Known {
  readonly isSigned: boolean;
  readonly balance: string;
  readonly transfer: { readonly transaction: `0x${string}`; readonly value: string } | null;
}

/**
 * A rail whose money is with a bank that is reached over HTTP, as an entry of the list of rails. It is an example of the members that a rail must have.
 */
export function createToyRail(bankUrl: string): RailModule {
  const info: RailInfo = {
    name: 'toy',
    isOn: () => true,
    contract: () => bytesToHex(CONTRACT),
    way: 'toy',
    requirement: () => requirementFrom,
    service: () => null,
  };
  async function ask<T>(path: string, authorization: Authorization, transaction?: Uint8Array): Promise<T> {
    const body = JSON.stringify({
      payment: textOf(authorization),
      ...(transaction && { transaction: bytesToHex(transaction) }),
    });
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    return (await (await fetch(bankUrl + path, { method: 'POST', body, signal })).json()) as T;
  }

  async function move({ id, authorization }: Intent, { noteBroadcast }: SettlerContext): Promise<Outcome> {
    // The transaction is on disk before the bank gets it. From then on only the evidence ends the sale.
    const transaction = randomBytes(32);
    if (!(await noteBroadcast([{ id, transaction }])).has(id)) return { kind: 'unknown' };
    const moved = await ask<Known['transfer'] & { refused?: true }>('/move', authorization, transaction);
    return moved.refused ? { kind: 'failed', reason: REVERTED } : settledBy(moved);
  }

  const lookup = async (authorization: Authorization): Promise<Found> => {
    const { transfer } = await ask<Known>('/known', authorization);
    return transfer ? settledBy(transfer) : { kind: 'open' };
  };
  const unknown = (): { kind: 'unknown' } => ({ kind: 'unknown' });

  const schemeWith = ({ ledger }: RailKit, status: SettlerStatus): SignedScheme => ({
    contract: CONTRACT,
    status,
    requirement: requirementFrom,
    read: (payload) => {
      const authorization = read(payload);
      return { authorization, authorizationHash: hashAuthorization(authorization, CONTRACT) };
    },
    checkAccepted: (accepted, { scheme, network, amount }) => {
      if (accepted.scheme !== scheme || accepted.network !== network || accepted.amount !== amount)
        throw new PaymentRefused('No matching payment requirements');
    },
    check: ({ authorization: { value, validBefore } }, { amount }, now) => {
      if (value !== BigInt(amount)) throw new PaymentRefused('toy_wrong_amount');
      if (validBefore <= BigInt(now)) throw new PaymentRefused('toy_expired');
    },
    checkSignature: async ({ payment: { authorization } }) => {
      const { isSigned } = await ask<Known>('/known', authorization);
      if (!isSigned) throw new PaymentRefused('toy_signature');
      return null;
    },
    review: ({ payment: { authorization } }) => lookup(authorization).catch(unknown),
    readPayer: async ({ payment: { authorization } }) => {
      const { balance, transfer } = await ask<Known>('/known', authorization);
      if (BigInt(balance) < authorization.value) throw new PaymentRefused('toy_insufficient_balance');
      return { used: transfer !== null, balance: BigInt(balance), hasCode: false, block: 0 };
    },
    verify: async ({ id, key, payment }, { balance }) => {
      if (balance < payment.authorization.value + (await ledger.sumOfOpen(key, id)))
        throw new PaymentRefused('toy_insufficient_balance');
      return { checkedBlock: 0, hasCode: false };
    },
    receipt: plainReceipt,
  });
  const openSettler = (context: SettlerContext): Settler => ({
    settle: (intents) => intents.map((intent) => move(intent, context).catch(unknown)),
    lookup: (authorization) => lookup(authorization).catch(unknown),
    ownOnly: false,
    unavailable: () => null,
    stop: async () => {},
  });
  const recognises = ({ scheme }: Accepted): boolean => scheme === SCHEME;
  return {
    info,
    open: (kit, status) => {
      const scheme = schemeWith(kit, status);
      const sell = (...sale: [UsdcCall, Credential]) => sellSigned(kit.sales, scheme, ...sale);
      return { info, contract: CONTRACT, recognises, sell, openSettler };
    },
  };
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

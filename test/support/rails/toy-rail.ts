import { createHmac, randomBytes } from 'node:crypto';
import type { PaymentRequirements } from '@x402/core/types';
import { bytesToHex, hexToBytes } from '../../../src/lib/hex.ts';
import { type Authorization, paymentKey } from '../../../src/payment/authorization.ts';
import { hashAuthorization } from '../../../src/payment/evm/eip3009.ts';
import type { Ledger } from '../../../src/payment/ledger.ts';
import type { Credential } from '../../../src/payment/protocol.ts';
import type { PurchaseRail } from '../../../src/payment/rail.ts';
import { PaymentRefused } from '../../../src/payment/refusal.ts';
import { type Intent, type Outcome, REVERTED } from '../../../src/payment/settler.ts';

const CONTRACT = Buffer.alloc(20, 0x70);
const SELLER = Buffer.alloc(20, 0x5e);
const NETWORK = 'eip155:5042';
/** Good for a day. */
const VALID_BEFORE = () => BigInt(Math.floor(Date.now() / 1000) + 86_400);

/**
 * A rail whose money is a map in memory: a bank that moves what a payer has signed with a shared key. It shows how much a rail must bring, and
 * has what no real one grants: a bank that does as it is told.
 */
export function createToyRail(ledger: () => Pick<Ledger, 'openBefore' | 'noteBroadcast'>) {
  const accounts = new Map<string, { key: Buffer; balance: bigint }>();
  const transfers = new Map<string, Buffer>();
  const bank = { refuses: false, losesAnswers: false, isAway: false };
  const accountOf = ({ from }: Authorization) => accounts.get(bytesToHex(from));
  const nameOf = ({ from, nonce }: Authorization): string => bytesToHex(from) + bytesToHex(nonce);

  function sign(balance: bigint, { amount }: Pick<PaymentRequirements, 'amount'>): Credential {
    const [from, key, nonce] = [randomBytes(20), randomBytes(32), randomBytes(32)];
    accounts.set(bytesToHex(from), { key, balance });
    const fields = { from, to: SELLER, value: BigInt(amount), validAfter: 0n, validBefore: VALID_BEFORE(), nonce };
    const authorization = { ...fields, signature: mac(key, fields) };
    const payload = Object.entries(authorization).map(([name, value]) => [
      name,
      value instanceof Uint8Array ? bytesToHex(value) : String(value),
    ]);
    return { accepted: { ...requirementOf(amount) }, payload: Object.fromEntries(payload) };
  }

  function read(payload: Credential['payload']): Authorization {
    const bytes = (name: string) => hexToBytes(String(payload[name]) as `0x${string}`);
    const number = (name: string) => BigInt(String(payload[name]));
    const numbers = { value: number('value'), validAfter: number('validAfter'), validBefore: number('validBefore') };
    return { from: bytes('from'), to: bytes('to'), ...numbers, nonce: bytes('nonce'), signature: bytes('signature') };
  }

  async function move({ id, authorization }: Intent): Promise<Outcome> {
    // On disk before the bank hears of it: from then on only the evidence ends the sale.
    const transaction = randomBytes(32);
    if (!(await ledger().noteBroadcast([{ id, transaction }])).has(id)) return { kind: 'unknown' };
    const account = accountOf(authorization);
    if (bank.refuses || !account || account.balance < authorization.value) return { kind: 'failed', reason: REVERTED };
    if (!transfers.has(nameOf(authorization))) {
      account.balance -= authorization.value;
      transfers.set(nameOf(authorization), transaction);
    }
    return bank.losesAnswers ? { kind: 'unknown' } : found(authorization);
  }

  function found(authorization: Authorization): Outcome {
    const transaction = transfers.get(nameOf(authorization));
    if (!transaction) return { kind: 'unknown' };
    return { kind: 'settled', transaction, block: 1, paid: authorization.value };
  }

  const lookup = async (authorization: Authorization) =>
    bank.isAway
      ? ({ kind: 'unknown' } as const)
      : transfers.has(nameOf(authorization))
        ? found(authorization)
        : ({ kind: 'open' } as const);

  const purchase: PurchaseRail = {
    contract: CONTRACT,
    settler: { unavailable: () => (bank.isAway ? 'the bank is away' : null) },
    requirement: ({ amount }) => requirementOf(amount),
    read: (payload) => {
      const authorization = read(payload);
      return { authorization, authorizationHash: hashAuthorization(authorization, CONTRACT) };
    },
    checkAccepted: (accepted, { amount }) => {
      if (accepted.scheme !== 'toy' || accepted.amount !== amount)
        throw new PaymentRefused('No matching payment requirements');
    },
    checkAuthorization: ({ value }, { amount }) => {
      if (value !== BigInt(amount)) throw new PaymentRefused('toy_wrong_amount');
    },
    checkSignature: async (authorization) => {
      const account = accountOf(authorization);
      if (!account || !mac(account.key, authorization).equals(authorization.signature))
        throw new PaymentRefused('toy_signature');
      return null;
    },
    review: (authorization) => lookup(authorization),
    look: async (authorization) => {
      const balance = accountOf(authorization)?.balance ?? 0n;
      if (balance < authorization.value) throw new PaymentRefused('toy_insufficient_balance');
      return { used: transfers.has(nameOf(authorization)), balance, hasCode: false, block: 0 };
    },
    verify: async (id, authorization, { balance }) => {
      const promised = await ledger().openBefore(paymentKey(authorization, NETWORK, CONTRACT), id);
      if (balance < authorization.value + promised) throw new PaymentRefused('toy_insufficient_balance');
      return { checkedBlock: 0, hasCode: false };
    },
  };
  const settler = {
    settle: (intents: readonly Intent[]) => intents.map(move),
    unavailable: () => null,
    stop: async () => {},
  };
  return {
    ...{ bank, purchase, network: NETWORK, settling: { settler, evidence: { lookup }, ownOnly: false } },
    /** A payment of a payer who has this much; the price where it is left out. */
    pay: (requirement: PaymentRequirements, balance = BigInt(requirement.amount)) => sign(balance, requirement),
    /** What the payer of one payment signs for the nonce of another. */
    signAs: ({ payload }: Credential, { payload: { nonce } }: Credential): string => {
      const authorization = read({ ...payload, nonce });
      return bytesToHex(mac(accountOf(authorization)?.key ?? Buffer.alloc(0), authorization));
    },
    moved: ({ payload }: Credential): number => Number(transfers.has(nameOf(read(payload)))),
    keyOf: ({ payload }: Credential) => paymentKey(read(payload), NETWORK, CONTRACT),
  };
}

function requirementOf(amount: string): PaymentRequirements {
  return {
    scheme: 'toy',
    network: NETWORK,
    amount,
    asset: 'TOY',
    payTo: bytesToHex(SELLER),
    maxTimeoutSeconds: 60,
    extra: {},
  };
}

function mac(key: Buffer, { from, to, value, nonce }: Omit<Authorization, 'signature'>): Buffer {
  return createHmac('sha256', key)
    .update(Buffer.concat([from, to, nonce]))
    .update(String(value))
    .digest();
}

import { createHmac, randomBytes } from 'node:crypto';
import { createHold } from '../hold.ts';
import { startStandIn } from '../upstream/http-stand-in.ts';

/** The message that a payer of the toy rail signs with its account's key, which the bank has too. All values are text. */
export interface ToyPayment {
  readonly from: string;
  readonly to: string;
  readonly value: string;
  readonly validAfter: string;
  readonly validBefore: string;
  readonly nonce: string;
  readonly signature: string;
}

const hex = (bytes: Buffer): string => `0x${bytes.toString('hex')}`;
const nameOf = ({ from, nonce }: ToyPayment): string => from + nonce;

/** Signs with an account's key. */
export function signToy(key: Buffer, { from, to, value, validBefore, nonce }: Omit<ToyPayment, 'signature'>): string {
  return hex(
    createHmac('sha256', key)
      .update(JSON.stringify([from, to, value, validBefore, nonce]))
      .digest(),
  );
}

/** The bank behind the toy rail, over HTTP in the test's process. It makes each signed transfer once, and keeps a list of them. */
export async function startToyBank() {
  const accounts = new Map<string, { key: Buffer; balance: bigint }>();
  const transfers = new Map<string, { transaction: string; value: string }>();
  const { passed, hold } = createHold();
  let asked = 0;

  async function move(payment: ToyPayment, transaction: string): Promise<object> {
    asked += 1;
    await passed();
    const known = transfers.get(nameOf(payment));
    if (known) return known;
    const account = accounts.get(payment.from);
    if (!account || account.balance < BigInt(payment.value)) return { refused: true };
    account.balance -= BigInt(payment.value);
    transfers.set(nameOf(payment), { transaction, value: payment.value });
    return { transaction, value: payment.value };
  }

  const server = await startStandIn(async ({ path, body: { payment, transaction } }) => {
    if (path === '/move') return { json: await move(payment, transaction) };
    const account = accounts.get(payment.from);
    const isSigned = account !== undefined && signToy(account.key, payment) === payment.signature;
    return {
      json: { isSigned, balance: String(account?.balance ?? 0n), transfer: transfers.get(nameOf(payment)) ?? null },
    };
  });

  return {
    url: server.url,
    /** Opens an account with a balance. */
    open: (balance: bigint) => {
      const [from, key] = [hex(randomBytes(20)), randomBytes(32)];
      const account = { key, balance };
      accounts.set(from, account);
      return { from, key, account };
    },
    /** Makes all transfers wait until the returned function is called, even when a client disconnects meanwhile. */
    hold,
    /** The number of requests for a transfer so far. */
    asked: () => asked,
    movedBy: (transaction: string): bigint =>
      BigInt([...transfers.values()].find((one) => one.transaction === transaction)?.value ?? 0),
    stop: server.stop,
  };
}

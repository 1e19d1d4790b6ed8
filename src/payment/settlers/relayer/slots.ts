import { transferCalldata } from '../../evm/token.ts';
import type { Fees, Price } from './fees.ts';
import type { GasModel } from './gas-model.ts';
import { type Job, newest, type Slot, type Version } from './job.ts';
import { batchCalldata, MULTICALL3 } from './multicall.ts';
import type { Nonces } from './nonces.ts';
import type { Wallet } from './wallet.ts';

interface SlotsOptions {
  usdc: `0x${string}`;
  wallet: Wallet;
  nonces: Nonces;
  fees: Pick<Fees, 'offer' | 'above'>;
  gas: Pick<GasModel, 'limit'>;
}

/**
 * The relayer's transactions in flight, by nonce. A slot stays until its nonce is used or nobody took what was sent under it:
 * one that were forgotten would leave a gap in which everything behind it waits.
 */
export function createSlots({ usdc, wallet, nonces, fees, gas }: SlotsOptions) {
  const slots = new Map<number, Slot>();
  // What was not enough under a nonce: somebody's transaction waits there, or one of ours that we do not remember.
  const refused = new Map<number, Price>();

  function sign(nonce: number, jobs: readonly Job[], price: Price): Version {
    const authorizations = jobs.map(({ intent }) => intent.authorization);
    const [only] = authorizations;
    const call =
      only && authorizations.length === 1
        ? { to: usdc, data: transferCalldata(only) }
        : ({ to: MULTICALL3, data: batchCalldata(usdc, authorizations) } as const);
    const limit = gas.limit(jobs.length);
    const signed = wallet.sign({ ...call, gas: limit, nonce, ...price });
    return { ...signed, jobs, gas: limit, price };
  }

  function priceUnder(nonce: number): Price {
    for (const past of refused.keys()) if (nonces.isPast(past)) refused.delete(past);
    const tooLittle = refused.get(nonce);
    return tooLittle ? (fees.above(tooLittle) ?? tooLittle) : fees.offer();
  }

  function close(slot: Slot): void {
    if (slots.get(slot.nonce) === slot) slots.delete(slot.nonce);
  }

  return {
    close,
    all: (): Slot[] => [...slots.values()],
    size: (): number => slots.size,
    has: (slot: Slot): boolean => slots.get(slot.nonce) === slot,
    /** Gives a group the lowest free nonce and signs for it. */
    open(jobs: readonly Job[]): Slot {
      const nonce = nonces.next(new Set(slots.keys()));
      const slot: Slot = { nonce, versions: [sign(nonce, jobs, priceUnder(nonce))], atMs: null, rescues: 0 };
      slots.set(nonce, slot);
      return slot;
    },
    /** A node found the slot's price too low for its nonce: the next under it offers more. */
    outbid: (slot: Slot): void => void refused.set(slot.nonce, newest(slot).price),
    /** Takes back the newest version, which was never sent, and the nonce with it where nothing else was sent under it. */
    dropUnsent(slot: Slot): void {
      slot.versions.pop();
      if (slot.versions.length === 0) close(slot);
    },
    /** Signs again for these jobs in place of the newest version, which was never sent. */
    replaceUnsent(slot: Slot, jobs: readonly Job[]): void {
      const { price } = newest(slot);
      slot.versions.pop();
      slot.versions.push(sign(slot.nonce, jobs, price));
    },
    /** Signs another version with a higher fee for these jobs; false where that would be more than any transaction is worth. */
    raise(slot: Slot, jobs: readonly Job[]): boolean {
      const price = fees.above(newest(slot).price);
      if (price) slot.versions.push(sign(slot.nonce, jobs, price));
      return price !== null;
    },
    /** Whether a lower nonce is free: then the slot would wait for ever. */
    isBehindGap: (slot: Slot): boolean =>
      nonces.next(new Set([...slots.keys()].filter((nonce) => nonce !== slot.nonce))) < slot.nonce,
  };
}

export type Slots = ReturnType<typeof createSlots>;

import type { Clock } from '../../lib/clock.ts';
import type { createFees } from './fees.ts';
import type { GasModel } from './gas-model.ts';
import { type Job, newest, type Slot, type Version } from './job.ts';
import { batchCalldata, MULTICALL3 } from './multicall.ts';
import type { createNonces } from './nonces.ts';
import { transferCalldata } from './token.ts';
import type { Wallet } from './wallet.ts';

interface SlotsOptions {
  usdc: `0x${string}`;
  wallet: Wallet;
  nonces: ReturnType<typeof createNonces>;
  fees: ReturnType<typeof createFees>;
  gas: GasModel;
  clock: Clock;
}

/**
 * The relayer's transactions in flight, by nonce. A slot stays until its nonce is used or nobody took what was sent under it:
 * one that were forgotten would leave a gap in which everything behind it waits.
 */
export function createSlots({ usdc, wallet, nonces, fees, gas, clock }: SlotsOptions) {
  const slots = new Map<number, Slot>();

  function sign(nonce: number, jobs: readonly Job[], price: ReturnType<typeof fees.offer>): Version {
    const authorizations = jobs.map(({ intent }) => intent.authorization);
    const [only] = authorizations;
    const lone = authorizations.length === 1 && only;
    const call = lone
      ? { to: usdc, data: transferCalldata(only) }
      : { to: MULTICALL3, data: batchCalldata(usdc, authorizations) };
    const limit = gas.limit(jobs.length);
    const signed = wallet.sign({ ...call, to: call.to as `0x${string}`, gas: limit, nonce, ...price });
    return { ...signed, jobs, gas: limit, maxFeePerGas: price.maxFeePerGas };
  }

  return {
    all: (): Slot[] => [...slots.values()],
    size: (): number => slots.size,
    close: (slot: Slot): void => {
      if (slots.get(slot.nonce) === slot) slots.delete(slot.nonce);
    },
    /** Gives a group the lowest free nonce and signs for it. */
    open(jobs: readonly Job[]): Slot {
      const nonce = nonces.next(new Set(slots.keys()));
      const slot = { nonce, versions: [sign(nonce, jobs, fees.offer(0n))], atMs: clock.nowMs() };
      slots.set(nonce, slot);
      return slot;
    },
    /** Signs again for these jobs in place of the newest version, which was never sent. */
    replaceUnsent(slot: Slot, jobs: readonly Job[]): void {
      slot.versions.pop();
      slot.versions.push(sign(slot.nonce, jobs, fees.offer(slot.versions.at(-1)?.maxFeePerGas ?? 0n)));
    },
    /** Signs another version with a higher fee, for what of its jobs still waits. */
    raise(slot: Slot, jobs: readonly Job[]): void {
      slot.versions.push(sign(slot.nonce, jobs, fees.offer(newest(slot).maxFeePerGas)));
      slot.atMs = clock.nowMs();
    },
    /** Whether a lower nonce is free: then the slot would wait for ever. */
    isBehindGap: (slot: Slot): boolean =>
      nonces.next(new Set([...slots.keys()].filter((nonce) => nonce !== slot.nonce))) < slot.nonce,
  };
}

export type Slots = ReturnType<typeof createSlots>;

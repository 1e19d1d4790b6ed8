import type { Hex } from './keys.ts';
import type { Wallet } from './wallets.ts';

/** What the chain holds under one name. Balances in wei of native USDC: both faces of it are the same money. */
export interface Slots {
  readonly [balance: `balance ${string}`]: bigint;
  readonly [nonce: `nonce ${string}`]: number;
  readonly [code: `code ${string}`]: Wallet | null;
  readonly [authorization: `authorization ${string}`]: true;
  readonly [blocked: `blocked ${string}`]: boolean;
  readonly paused: boolean;
  readonly [channel: `channel ${string}`]: ChannelSlot;
  /** Null once it is carried out or cancelled. */
  readonly [withdrawal: `withdrawal ${string}`]: { readonly amount: bigint; readonly initiatedAt: number } | null;
  /** How many refunds a channel has had. */
  readonly [refunds: `refunds ${string}`]: bigint;
  readonly [receiver: `receiver ${string}`]: { readonly totalClaimed: bigint; readonly totalSettled: bigint };
  /** A channel whose claims revert, for a reason that no rule of the contract names. */
  readonly [poisoned: `poisoned ${string}`]: boolean;
}

/** A payment channel's money, in base units. */
export interface ChannelSlot {
  readonly balance: bigint;
  readonly totalClaimed: bigint;
}

/** The chain's state, as it is at one block, with changes of its own on top. */
export interface View {
  get<K extends keyof Slots & string>(slot: K): Slots[K] | undefined;
  set<K extends keyof Slots & string>(slot: K, value: Slots[K]): void;
  /** A point that `undo` goes back to. */
  mark(): number;
  undo(mark: number): void;
}

interface History {
  readonly blocks: number[];
  readonly values: unknown[];
}

/** Every slot with every value that it ever had, by block: so that a node that lags tells what was. */
export function createState() {
  const slots = new Map<string, History>();

  function read(slot: string, block: number): unknown {
    const history = slots.get(slot);
    if (!history) return undefined;
    let at = history.blocks.length - 1;
    while (at >= 0 && (history.blocks[at] as number) > block) at -= 1;
    return history.values[at];
  }

  function write(slot: string, value: unknown, block: number): void {
    const history = slots.get(slot) ?? { blocks: [], values: [] };
    slots.set(slot, history);
    if (history.blocks.at(-1) === block) {
      history.values[history.values.length - 1] = value;
      return;
    }
    history.blocks.push(block);
    history.values.push(value);
  }

  /** What is set is kept apart until `commit`, which makes it the state from `block` on. */
  function view(block: number): View & { commit(block: number): void } {
    const changed = new Map<string, unknown>();
    const journal: { slot: string; before: unknown; had: boolean }[] = [];
    return {
      get: (slot) => (changed.has(slot) ? changed.get(slot) : read(slot, block)) as never,
      set: (slot, value) => {
        journal.push({ slot, before: changed.get(slot), had: changed.has(slot) });
        changed.set(slot, value);
      },
      mark: () => journal.length,
      undo: (mark) => {
        while (journal.length > mark) {
          const { slot, before, had } = journal.pop() as (typeof journal)[number];
          if (had) changed.set(slot, before);
          else changed.delete(slot);
        }
      },
      commit: (at) => {
        for (const [slot, value] of changed) write(slot, value, at);
      },
    };
  }

  return { view };
}

/** Wei of native USDC in one base unit of its ERC-20 face. */
export const WEI_PER_UNIT = 10n ** 12n;

export const balanceOf = (view: View, address: Hex): bigint => view.get(`balance ${address}`) ?? 0n;
export const unitsOf = (view: View, address: Hex): bigint => balanceOf(view, address) / WEI_PER_UNIT;

/** Moves wei; false where there are too few. */
export function moveWei(view: View, from: Hex, to: Hex, wei: bigint): boolean {
  const left = balanceOf(view, from) - wei;
  if (left < 0n) return false;
  view.set(`balance ${from}`, left);
  view.set(`balance ${to}`, balanceOf(view, to) + wei);
  return true;
}

import type { Random } from '../engine/random.ts';
import { type Account, accountOf, type Hex, signDigest, toHex } from './chain/keys.ts';
import type { View } from './chain/state.ts';
import { WEI_PER_UNIT } from './chain/state.ts';
import { type Terms, transferDigest } from './chain/token.ts';
import type { Wallet } from './chain/wallets.ts';

/** Who pays: an account with a key, or a smart wallet whose owner has one. */
export interface Payer {
  readonly name: string;
  readonly account: Account;
  /** Where the money is. */
  readonly address: Hex;
  readonly isWallet: boolean;
  /** USDC base units at the start. */
  readonly units: bigint;
}

export const HONEST_WALLET: Omit<Wallet, 'owner'> = { turnsWhen: 'never', turnsTo: 'no' };

/** Wallets that come up together, to fail once each. */
export const GRIEFERS: readonly string[] = Array.from({ length: 9 }, (_, at) => `griefer${at}`);

/** Who is there, and with how much: some with plenty, one who has to count, some with nothing. */
const CAST: Readonly<Record<string, { units: bigint; isWallet: boolean }>> = {
  ...Object.fromEntries(['rich0', 'rich1', 'rich2'].map((name) => [name, { units: 1_000_000n, isWallet: false }])),
  thrifty: { units: 2_500n, isWallet: false },
  ...Object.fromEntries(['poor0', 'poor1'].map((name) => [name, { units: 0n, isWallet: false }])),
  ...Object.fromEntries(['wallet0', 'wallet1', 'wallet2'].map((name) => [name, { units: 1_000_000n, isWallet: true }])),
  ...Object.fromEntries(GRIEFERS.map((name) => [name, { units: 1_000_000n, isWallet: true }])),
  ...Object.fromEntries(
    ['honest0', 'honest1', 'honest2', 'honest3'].map((name) => [name, { units: 5_000_000n, isWallet: false }]),
  ),
};

export const PAYER_NAMES: readonly string[] = Object.keys(CAST).filter((name) => !/^(honest|griefer)/.test(name));
export const HONEST_NAMES: readonly string[] = Object.keys(CAST).filter((name) => name.startsWith('honest'));

export function createPayers(random: Random) {
  const all = new Map<string, Payer>(
    Object.entries(CAST).map(([name, { units, isWallet }]) => {
      const account = accountOf(random.bytes(32));
      const address = isWallet ? toHex(random.bytes(20)) : account.address;
      return [name, { name, account, address, isWallet, units }];
    }),
  );
  return {
    all: (): readonly Payer[] => [...all.values()],
    get(name: string): Payer {
      const found = all.get(name);
      if (!found) throw new Error(`nobody is called ${name}`);
      return found;
    },
    /** Somebody nobody has heard of, with nothing. */
    newAccount: (): Payer => {
      const account = accountOf(random.bytes(32));
      return { name: 'a new account', account, address: account.address, isWallet: false, units: 0n };
    },
    /** Their balances and wallets, before the first block. */
    fund(view: View): void {
      for (const { address, units, isWallet, account } of all.values()) {
        view.set(`balance ${address}`, units * WEI_PER_UNIT);
        if (!isWallet) continue;
        view.set(`code ${address}`, { owner: account.address, ...HONEST_WALLET });
        // For the gas of what its owner sends.
        view.set(`balance ${account.address}`, units * WEI_PER_UNIT);
      }
    },
  };
}

/** Signs terms under a domain with the payer's own key, or its wallet's owner's. */
export const signTerms = (payer: Payer, domain: Buffer, terms: Terms): Buffer =>
  signDigest(transferDigest(domain, terms), payer.account);

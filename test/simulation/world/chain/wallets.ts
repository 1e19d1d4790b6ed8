import { type Hex, signerOf } from './keys.ts';

/**
 * A smart wallet's code: what it says when it is asked whether it signed (ERC-1271). A wallet sees what a contract sees: the gas price, who
 * began the transaction, how much gas is left.
 */
export interface Wallet {
  /** Whose key counts; null takes any signature. */
  readonly owner: Hex | null;
  /** Says no, burns or throws only where this holds; `never` is an honest wallet. */
  readonly turnsWhen: 'never' | 'always' | 'paid gas' | 'the relayer sends' | 'little gas';
  readonly turnsTo: 'no' | 'burns all' | 'burns most, then yes' | 'burns some, then no';
}

/** What a wallet can see of the call that asks it. */
export interface Asked {
  readonly digest: Buffer;
  readonly signature: Buffer;
  readonly gas: number;
  readonly gasPrice: bigint;
  readonly origin: Hex;
  readonly relayer: Hex;
}

/** Gas of an honest check: a call, a recovery. */
const CHECK_GAS = 9_000;
/** What a wallet leaves that wants to say yes in the end. */
const KEPT_GAS = 60_000;

/** The wallet's answer and the gas that it took; null where its call failed. */
export function askWallet(wallet: Wallet, asked: Asked): { gasUsed: number; valid: boolean | null } {
  const { gas } = asked;
  if (gas < CHECK_GAS) return { gasUsed: gas, valid: null };
  if (turns(wallet, asked)) {
    if (wallet.turnsTo === 'no') return { gasUsed: CHECK_GAS, valid: false };
    if (wallet.turnsTo === 'burns all') return { gasUsed: gas, valid: null };
    if (wallet.turnsTo === 'burns some, then no') return { gasUsed: Math.floor(gas * 0.7), valid: false };
    return { gasUsed: Math.max(CHECK_GAS, gas - KEPT_GAS), valid: signed(wallet, asked) };
  }
  return { gasUsed: CHECK_GAS, valid: signed(wallet, asked) };
}

function signed({ owner }: Wallet, { digest, signature }: Asked): boolean {
  return owner === null || signerOf(digest, signature) === owner;
}

function turns({ turnsWhen }: Wallet, { gasPrice, origin, relayer, gas }: Asked): boolean {
  switch (turnsWhen) {
    case 'never':
      return false;
    case 'always':
      return true;
    case 'paid gas':
      return gasPrice > 0n;
    case 'the relayer sends':
      return gasPrice > 0n && origin === relayer;
    case 'little gas':
      return gas < 400_000;
  }
}

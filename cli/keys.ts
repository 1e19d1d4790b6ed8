import { readFileSync, statSync } from 'node:fs';
import { bytesToHex, hexToBytes } from '../src/lib/hex.ts';
import { addressOf, keccak256 } from '../src/lib/secp256k1.ts';
import type { LightningPayer } from './payers/payer.ts';

// The buyer's keys and wallets. They come from the environment, or from a file that its owner alone may read, which
// `NAME_FILE` names. They never come from arguments, which other users of a machine can see, and never reach a log.

export type Env = Readonly<Record<string, string | undefined>>;

/** A key or a wallet is missing, malformed or readable by others. Its message holds no secret. */
export class KeyError extends Error {}

/** The bits of a file's mode that let others read or change it. */
const OTHERS = 0o077;

/**
 * A secret of the environment, or of the file that `NAME_FILE` names. Null for neither. Throws for both, and for an
 * open file.
 */
export function readSecret(env: Env, name: string): string | null {
  const [value, file] = [env[name], env[`${name}_FILE`]];
  if (value && file) throw new KeyError(`${name} and ${name}_FILE are both set: set one`);
  if (!file) return value || null;
  let text: string;
  try {
    if (process.platform !== 'win32' && (statSync(file).mode & OTHERS) !== 0)
      throw new KeyError(`${name}_FILE is open to others: chmod 600 ${file}`);
    text = readFileSync(file, 'utf8').trim();
  } catch (error) {
    if (error instanceof KeyError) throw error;
    throw new KeyError(`${name}_FILE cannot be read: ${(error as NodeJS.ErrnoException).code ?? 'unknown'}`);
  }
  if (text === '') throw new KeyError(`${name}_FILE is empty`);
  return text;
}

/** The key that signs for USDC. Null where none is set. Throws for one that is none. */
export function buyerKey(env: Env): `0x${string}` | null {
  const key = readSecret(env, 'BUYER_PRIVATE_KEY');
  if (key === null) return null;
  if (!/^0x[0-9a-fA-F]{64}$/.test(key)) throw new KeyError(NO_KEY);
  return key as `0x${string}`;
}

/** The address of a key. */
export const addressIn = (key: `0x${string}`): `0x${string}` => checksummed(addressOf(hexToBytes(key)));

/** An address in EIP-55's case, as other clients write it: a seller may compare the text. */
export function checksummed(address: string): `0x${string}` {
  const digits = address.slice(2).toLowerCase();
  const hash = bytesToHex(keccak256(Buffer.from(digits, 'ascii'))).slice(2);
  const isUpper = (at: number): boolean => Number.parseInt(hash[at] ?? '0', 16) >= 8;
  return `0x${[...digits].map((digit, at) => (isUpper(at) ? digit.toUpperCase() : digit)).join('')}`;
}

export const NO_KEY = 'BUYER_PRIVATE_KEY must hold 0x and 64 hex digits';
export const NO_PAYER = 'a payer is needed: NWC_PAYER, LND_PAYER_URL, CLN_PAYER_URL, PHOENIXD_PAYER_URL or PAYER_URL';

/** Throws for an address that fetch would refuse, because its refusal repeats the address, with a password in it. */
function checkAddress(name: string, text: string): void {
  const url = URL.parse(text);
  if (url && /^https?:$/.test(url.protocol) && url.username === '' && url.password === '') return;
  throw new KeyError(`${name} must hold an http or https URL without a user name and a password`);
}

const PAYERS = ['NWC_PAYER', 'LND_PAYER_URL', 'CLN_PAYER_URL', 'PHOENIXD_PAYER_URL', 'PAYER_URL'] as const;

/** Whether a Lightning wallet is named. */
export const namesPayer = (env: Env): boolean => PAYERS.some((name) => env[name] || env[`${name}_FILE`]);

/**
 * The Lightning wallet that the environment names; null when it names none. Throws for several, and an incomplete one.
 */
export async function payerFrom(env: Env): Promise<LightningPayer | null> {
  const named = PAYERS.filter((name) => env[name] || env[`${name}_FILE`]);
  const [name, other] = named;
  if (other) throw new KeyError(`set one of ${PAYERS.slice(0, -1).join(', ')} and ${PAYERS.at(-1)}`);
  if (!name) return null;
  const at = readSecret(env, name) ?? '';
  if (name !== 'NWC_PAYER') checkAddress(name, at);
  // Each is imported on demand: their libraries take most of the start-up time.
  if (name === 'NWC_PAYER') return (await import('./payers/nwc.ts')).createNwcPayer(at);
  if (name === 'PAYER_URL') return (await import('./payers/url.ts')).createUrlPayer(at);
  if (name === 'CLN_PAYER_URL') {
    const rune = readSecret(env, 'CLN_PAYER_RUNE');
    if (rune === null) throw new KeyError('CLN_PAYER_RUNE must hold the rune');
    return (await import('./payers/cln.ts')).createClnPayer({ url: at, rune });
  }
  if (name === 'PHOENIXD_PAYER_URL') {
    const password = readSecret(env, 'PHOENIXD_PAYER_PASSWORD');
    if (password === null) throw new KeyError('PHOENIXD_PAYER_PASSWORD must hold the http-password');
    return (await import('./payers/phoenixd.ts')).createPhoenixdPayer({ url: at, password });
  }
  const macaroon = readSecret(env, 'LND_PAYER_MACAROON') ?? '';
  if (!/^(?:[0-9a-fA-F]{2})+$/.test(macaroon))
    throw new KeyError('LND_PAYER_MACAROON must hold the macaroon as hex digits');
  const certificate = env.LND_PAYER_TLS_CERT ? readFileSync(env.LND_PAYER_TLS_CERT, 'utf8') : null;
  return (await import('./payers/lnd.ts')).createLndPayer({ url: at, macaroon, certificate });
}

import { hexToBytes } from '../lib/hex.ts';
import { isLoopback } from '../lib/limits/client.ts';
import { addressOf, hasFittingCase } from '../lib/secp256k1.ts';
import { usdcOf } from './network.ts';

type Given = Readonly<Record<string, string | undefined>>;

const ZERO = `0x${'0'.repeat(40)}`;
/** Whose address the seller's must not be, by the key that belongs to it. */
const OWN_KEYS = [
  ['RELAYER_PRIVATE_KEY', 'the relayer’s own address', 'its key pays gas on this machine and must not hold the sales'],
  ['SELFTEST_PRIVATE_KEY', 'the self-test’s own address', 'it would pay itself, and its key would hold the sales'],
] as const;

/**
 * Why SELLER_ADDRESS cannot be the address that is paid, in at most one line. What is paid to a wrong address is lost,
 * so a mistyped digit and each address that the service itself knows are refused before the first sale. An address in
 * one letter case has no checksum and passes.
 */
export function sellerProblems(given: Given): string[] {
  const seller = given.SELLER_ADDRESS ?? '';
  if (!/^0x[0-9a-fA-F]{40}$/.test(seller)) return [];
  const lower = seller.toLowerCase();
  if (!hasFittingCase(seller))
    return ['SELLER_ADDRESS: its letter case is not its EIP-55 checksum, so a character is mistyped (copy it again)'];
  if (lower === ZERO) return ['SELLER_ADDRESS is the zero address (nobody has its key; what is paid to it is lost)'];
  if (lower === usdcOf(given)) return ['SELLER_ADDRESS is the USDC contract (what is paid to it is lost)'];
  const own = OWN_KEYS.find(([key]) => addressBy(given[key]) === lower);
  return own ? [`SELLER_ADDRESS is ${own[1]} (${own[0]}): ${own[2]}`] : [];
}

/**
 * Why buyers cannot be sent to PUBLIC_ORIGIN, one line each. Paths are appended to it and requests are bound to it, so
 * it is a scheme, a host and a port alone. In production it is https, except on this machine and for play money.
 */
export function originProblems(given: Given): string[] {
  const origin = given.PUBLIC_ORIGIN ?? '';
  if (!URL.canParse(origin)) return [];
  const url = new URL(origin);
  const problems: string[] = [];
  if (!/^https?:\/\/[^/?#@\\]+\/?$/i.test(origin))
    problems.push('PUBLIC_ORIGIN: a scheme, a host and a port alone (no path, query, fragment or user)');
  const isPlain = url.protocol === 'http:' && given.NODE_ENV === 'production';
  if (isPlain && given.PLAY_MONEY !== 'on' && !isOnThisMachine(url.hostname))
    problems.push('PUBLIC_ORIGIN: https in production (http is for loopback hosts, and for PLAY_MONEY=on)');
  return problems;
}

/** The address of a key in lower case; null without one, and for text that is no key. `describe` names that fault. */
function addressBy(key: string | undefined): string | null {
  if (key === undefined || !/^0x[0-9a-fA-F]{64}$/.test(key)) return null;
  try {
    return addressOf(hexToBytes(key as `0x${string}`));
  } catch {
    return null;
  }
}

function isOnThisMachine(hostname: string): boolean {
  const bare = hostname.replace(/^\[|\]$/g, '');
  return bare === 'localhost' || bare.endsWith('.localhost') || isLoopback(bare);
}

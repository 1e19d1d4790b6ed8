import { parseArgs } from 'node:util';
import { parseSats } from '../lightning/sats.ts';
import { parseUsdc } from './usdc.ts';
import { PROTOCOLS, type Protocol } from './ways-to-pay.ts';

/** What `--help` prints. */
export const USAGE = `Buys one answer from a seller that asks to be paid over x402, L402 or MPP, in USDC or in bitcoin over Lightning.

  npm run pay -- URL [--rail usdc|lightning] [--protocol x402|l402|mpp] [--max-usdc 0.01] [--max-sats 100] [--discovery URL] [--dry-run]
  npm run pay -- URL --channel [--max-usdc 0.01] [--max-deposit 1] [--channel-dir DIR] [--dry-run]
  npm run pay -- URL --channel --refund [--channel-dir DIR]
  npm run pay -- --proof FILE

  --rail R         how to pay (default: over Lightning where the seller offers that, else in USDC)
  --protocol P     how the seller asks (default: x402, then mpp, then l402, where the seller offers several)
  --max-usdc N     the most to pay, in USDC (default 0.01); also --maxUsdc N, maxUsdc=N or MAX_USDC
  --max-sats N     the most to pay, in whole sats (default 100); also --maxSats N, maxSats=N or MAX_SATS;
                   fees count too, where the payer can be limited
  --discovery URL  a percall service; more than the price that its search lists is not paid; also DISCOVERY_URL
                   (default: more than the seller's own OpenAPI document lists is not paid)
  --dry-run        show what would be paid, pay and sign nothing; no key needed
  --proof FILE     redeem a Lightning payment whose answer did not arrive; never pays twice
  --channel        pay in USDC over a payment channel: one deposit, then a signed voucher for each call; one call at a time
  --max-deposit N  refuse to deposit more than this, in USDC (default 1). A deposit is the least that the seller takes, or five calls where
                   it names none
  --channel-dir D  the folder with the channels' records (default ./.percall/channels)
  --refund         ask the seller for the rest of the channel; URL is any of the seller's priced routes
  --help           this text

USDC: the buyer's key is read from BUYER_PRIVATE_KEY (0x and 64 hex digits).
Channels: RPC_URL is a JSON-RPC endpoint of the seller's chain. With it, a lost or old record of a channel is corrected by itself.
Lightning: the payer is one of
  NWC_PAYER      a nostr+walletconnect:// connection that may pay
  LND_PAYER_URL  LND's REST interface, with LND_PAYER_MACAROON (hex) and, for its own certificate, LND_PAYER_TLS_CERT (a file)
  PAYER_URL      a URL that takes POST { "invoice" } and answers { "preimage" }, as the demonstration has one
The answer's body goes to standard output, everything else to standard error.
Exit code: 0 answered, 1 refused or failed, 2 wrong usage.`;

/** The command line or the environment is wrong. */
export class UsageError extends Error {}

/** What the buyer asks for. */
export interface Order {
  readonly url: URL;
  readonly rail: 'usdc' | 'lightning' | null;
  /** Null: any. */
  readonly protocol: Protocol | null;
  /** A service whose search lists prices; null: the seller's own list alone. */
  readonly discovery: URL | null;
  readonly ceilingUnits: bigint;
  readonly ceilingMsat: bigint;
  readonly dryRun: boolean;
  /** Null: no payment channel. */
  readonly channel: ChannelOrder | null;
}

/** How a payment channel is used. */
export interface ChannelOrder {
  /** The folder with the channels' records. */
  readonly directory: string;
  /** The most to deposit, in base units. */
  readonly maxDeposit: bigint;
  readonly refund: boolean;
}

/** The default of `--max-deposit` in base units: 1 USDC. */
const MAX_DEPOSIT = 1_000_000n;
const CHANNEL_DIRECTORY = '.percall/channels';

/** Reads the words of a command line. Throws UsageError. */
export function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        rail: { type: 'string' },
        protocol: { type: 'string' },
        'max-usdc': { type: 'string' },
        maxUsdc: { type: 'string' },
        'max-sats': { type: 'string' },
        maxSats: { type: 'string' },
        discovery: { type: 'string' },
        'dry-run': { type: 'boolean', default: false },
        proof: { type: 'string' },
        channel: { type: 'boolean', default: false },
        'max-deposit': { type: 'string' },
        'channel-dir': { type: 'string' },
        refund: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
      },
    });
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

type Given = Pick<ReturnType<typeof parse>, 'values' | 'positionals'>;

/** Reads an order from the command line and, for ceilings and the discovery service, from the environment. Throws UsageError. */
export function readOrder({ values, positionals }: Given, env: Record<string, string | undefined>): Order {
  const targets = positionals.filter((word) => !CEILING.test(word));
  const [target] = targets;
  if (targets.length !== 1 || target === undefined) throw new UsageError('one URL is needed');
  const url = readUrl(target);
  const { rail = null, protocol = null } = values;
  if (rail !== null && rail !== 'usdc' && rail !== 'lightning') throw new UsageError('--rail is usdc or lightning');
  if (protocol !== null && !isProtocol(protocol)) throw new UsageError(`--protocol is ${PROTOCOLS.join(', ')}`);
  const given = { values, positionals };
  const usdc = readCeiling(given, env, { flag: 'max-usdc', name: 'maxUsdc', variable: 'MAX_USDC', usual: '0.01' });
  const ceilingUnits = parseUsdc(usdc.text);
  if (ceilingUnits === null) throw new UsageError(`${usdc.from} is a decimal number with at most 6 decimals`);
  const sats = readCeiling(given, env, { flag: 'max-sats', name: 'maxSats', variable: 'MAX_SATS', usual: '100' });
  const ceilingMsat = parseSats(sats.text);
  if (ceilingMsat === null) throw new UsageError(`${sats.from} is a whole number`);
  const discovery = values.discovery ?? env.DISCOVERY_URL;
  const channel = readChannelOrder(values);
  if (channel && protocol !== null && protocol !== 'x402') throw new UsageError('--channel pays over x402');
  return {
    url,
    rail,
    protocol,
    ceilingUnits,
    ceilingMsat,
    dryRun: values['dry-run'],
    channel,
    discovery: discovery ? readUrl(discovery) : null,
  };
}

const isProtocol = (text: string): text is Protocol => PROTOCOLS.some((one) => one === text);

function readUrl(text: string): URL {
  if (!URL.canParse(text)) throw new UsageError(`not a URL: ${text}`);
  const url = new URL(text);
  if (['http:', 'https:'].includes(url.protocol)) return url;
  throw new UsageError(`not an http or https URL: ${text}`);
}

/** A ceiling as a word of its own, `maxUsdc=0.01`. */
const CEILING = /^(maxUsdc|maxSats)=(.*)$/s;

/** The spellings of one ceiling, and its default. */
interface Ceiling {
  readonly flag: 'max-usdc' | 'max-sats';
  readonly name: 'maxUsdc' | 'maxSats';
  readonly variable: string;
  readonly usual: string;
}

/** The command line's ceiling, else the environment's, else the default. Throws UsageError for two different ones, because one of them is a mistake. */
function readCeiling({ values, positionals }: Given, env: Record<string, string | undefined>, ceiling: Ceiling) {
  const { flag, name, variable, usual } = ceiling;
  const words = positionals.flatMap((word) => {
    const [, named, text = ''] = CEILING.exec(word) ?? [];
    return named === name ? [{ text, from: name }] : [];
  });
  const flags = [flag, name].flatMap((key) => {
    const text = values[key as Ceiling['flag']];
    return text === undefined ? [] : [{ text, from: `--${key}` }];
  });
  const [first, ...more] = [...flags, ...words];
  const other = more.find(({ text }) => text !== first?.text);
  if (first && other) throw new UsageError(`${first.from} and ${other.from} are two ceilings: name one`);
  return first ?? (env[variable] ? { text: env[variable], from: variable } : { text: usual, from: `--${flag}` });
}

function readChannelOrder(values: Given['values']): ChannelOrder | null {
  const { channel, refund, 'max-deposit': most, 'channel-dir': directory = CHANNEL_DIRECTORY } = values;
  if (!channel) {
    const stray = (['refund', 'max-deposit', 'channel-dir'] as const).find((name) => values[name]);
    if (stray) throw new UsageError(`--${stray} needs --channel`);
    return null;
  }
  if (values.rail === 'lightning') throw new UsageError('--channel pays in USDC, not over Lightning');
  if (refund && values['dry-run']) throw new UsageError('--refund pays nothing, so it has no --dry-run');
  if (directory === '') throw new UsageError('--channel-dir needs a folder');
  const maxDeposit = most === undefined ? MAX_DEPOSIT : parseUsdc(most);
  if (maxDeposit === null) throw new UsageError('--max-deposit is a decimal number with at most 6 decimals');
  return { directory, maxDeposit, refund };
}

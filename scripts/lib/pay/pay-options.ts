import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { parseSats } from '../lightning/sats.ts';
import { parseUsdc } from './usdc.ts';

/** What `--help` prints. */
export const USAGE = `Buys one answer from a seller that takes x402 payments in USDC, or in bitcoin over Lightning.

  npm run pay -- URL [--rail usdc|lightning] [--max-usdc 0.01] [--max-sats 100] [--dry-run]
  npm run pay -- URL --channel [--max-usdc 0.01] [--max-deposit 1] [--channel-dir DIR] [--dry-run]
  npm run pay -- URL --channel --refund [--channel-dir DIR]
  npm run pay -- --proof FILE

  --rail R         how to pay (default: over Lightning where the seller offers that, else in USDC)
  --max-usdc N     the most to pay, in USDC (default 0.01)
  --max-sats N     the most to pay, in whole sats (default 100); fees count too, where the payer can be limited
  --dry-run        show what would be paid, pay and sign nothing; no key needed
  --proof FILE     redeem a Lightning payment whose answer did not arrive; never pays twice
  --channel        pay in USDC over a payment channel: one deposit, then a signed voucher for each call; one call at a time
  --max-deposit N  the most to deposit, in USDC (default: the least that the seller takes, but at the most 1)
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
  readonly ceilingUnits: bigint;
  readonly ceilingMsat: bigint;
  readonly dryRun: boolean;
  /** Null: no payment channel. */
  readonly channel: ChannelOrder | null;
}

/** How a payment channel is used. */
export interface ChannelOrder {
  /** The folder with the channels' records, as a full path. */
  readonly directory: string;
  /** The most to deposit, in base units. */
  readonly maxDeposit: bigint;
  readonly refund: boolean;
}

/** The default of `--max-deposit` in base units: 1 USDC. A deposit is the seller's minimum, so a lower minimum is a lower deposit. */
const MAX_DEPOSIT = 1_000_000n;
const CHANNEL_DIRECTORY = '.percall/channels';

/** Reads the command line. Throws UsageError. */
export function parse() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        rail: { type: 'string' },
        'max-usdc': { type: 'string', default: '0.01' },
        'max-sats': { type: 'string', default: '100' },
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

type Given = ReturnType<typeof parse>;

/** Reads an order from the command line. Throws UsageError. */
export function readOrder({ values, positionals }: Given): Order {
  const [target] = positionals;
  if (positionals.length !== 1 || target === undefined) throw new UsageError('one URL is needed');
  if (!URL.canParse(target)) throw new UsageError(`not a URL: ${target}`);
  const url = new URL(target);
  if (!['http:', 'https:'].includes(url.protocol)) throw new UsageError(`not an http or https URL: ${target}`);
  const { rail = null } = values;
  if (rail !== null && rail !== 'usdc' && rail !== 'lightning') throw new UsageError('--rail is usdc or lightning');
  const ceilingUnits = parseUsdc(values['max-usdc']);
  if (ceilingUnits === null) throw new UsageError('--max-usdc is a decimal number with at most 6 decimals');
  const ceilingMsat = parseSats(values['max-sats']);
  if (ceilingMsat === null) throw new UsageError('--max-sats is a whole number');
  return { url, rail, ceilingUnits, ceilingMsat, dryRun: values['dry-run'], channel: readChannelOrder(values) };
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
  return { directory: resolve(directory), maxDeposit, refund };
}

import { join, resolve } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { openBuyer, settingsFrom } from './buyer.ts';
import { buyerKey, KeyError, namesPayer } from './keys.ts';
import { serveHost, type Terms } from './mcp/server.ts';
import { parseSats, parseUsdc } from './money.ts';
import type { ExitCode, Surroundings } from './pay-command.ts';
import { MAX_DEPOSIT, readRate, readUrl, readWords, UsageError } from './pay-options.ts';
import type { Rail } from './port.ts';

// `percall mcp`: reads what a host's configuration says, opens the wallet, and serves the host until it ends.

/** What `percall mcp --help` prints. */
export const MCP_USAGE = `Serves one seller's tools to a host of models (MCP over standard input and output), and pays for calls
from your own wallet, within your budgets.

  percall mcp SELLER [--rail usdc|lightning] [--ask-above 0.01] [--ask-above-sats 100] [--max-usdc 1] [--max-sats 10000]
  percall mcp SELLER --channel [--max-deposit 1] [--channel-dir DIR]
  percall mcp SELLER --gateway

  SELLER is a seller's origin, whose tools are read from /mcp, else made from /openapi.json; or its MCP server's address.
  A host starts the command: docs/clients.md has the lines for its configuration file.

  --ask-above N    ask the person above this price of a call, in USD (default 0.01), through the host (MCP elicitation);
                   a host that cannot ask gets a refusal
  --ask-above-sats N  the same for calls that are paid over Lightning, in whole sats (default 100)
  --ask-within N   how long the person has, in seconds (default 300)
  --max-usdc N     the most to pay for a call, whoever agrees, in USDC (default 1)
  --max-sats N     the same in whole sats (default 10000)
  --rail R         how to pay (default: over Lightning where that is offered and a wallet is set, else in USDC)
  --channel, --max-deposit N, --channel-dir D, --gateway, --btc-usd N, --data-dir D   as for percall pay
  --discovery URL  a percall service; its prices bound calls of routes, and search asks it (default: the seller's own)
  --help           this text

Without a budget of an hour or a day the person is asked about each payment: percall wallet budget --day 1
Keys and wallets are read from the environment, or from a file of mode 0600 that NAME_FILE names (percall pay --help).
Standard output carries the protocol alone. An answer that is too long for a host is kept in answers of the data folder.
Exit code: 0 the host has ended it, 1 failed, 2 wrong usage.

Example: percall mcp https://api.example --ask-above 0.05`;

/** What the command has besides its words. */
export interface McpSurroundings extends Surroundings {
  readonly input: Readable;
  readonly output: Writable;
  /** Waits before a list that could not be read is tried again. Tests give their own. */
  readonly delay?: (ms: number) => Promise<void>;
}

/** Runs the command with these words until its host ends it. */
export async function mcpCommand(args: readonly string[], at: McpSurroundings): Promise<ExitCode> {
  try {
    const { values, positionals } = wordsIn(args);
    if (values.help) {
      await at.deliver(Buffer.from(`${MCP_USAGE}\n`));
      return 0;
    }
    await run({ values, positionals }, at);
    return 0;
  } catch (error) {
    const usage = error instanceof UsageError || error instanceof KeyError;
    if (error instanceof UsageError) at.say(`${MCP_USAGE}\n`);
    at.say(`${usage ? 'usage' : 'failed'}: ${error instanceof Error ? error.message : error}`);
    return usage ? 2 : 1;
  }
}

function wordsIn(args: readonly string[]) {
  return readWords({
    args: [...args],
    allowPositionals: true,
    options: {
      rail: { type: 'string' },
      'ask-above': { type: 'string', default: '0.01' },
      'ask-above-sats': { type: 'string', default: '100' },
      'ask-within': { type: 'string', default: '300' },
      'max-usdc': { type: 'string', default: '1' },
      'max-sats': { type: 'string', default: '10000' },
      channel: { type: 'boolean', default: false },
      'max-deposit': { type: 'string' },
      'channel-dir': { type: 'string' },
      gateway: { type: 'boolean', default: false },
      'btc-usd': { type: 'string' },
      discovery: { type: 'string' },
      'data-dir': { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
}

type Words = Pick<ReturnType<typeof wordsIn>, 'values' | 'positionals'>;

async function run(words: Words, at: McpSurroundings): Promise<void> {
  const { env, folder, say, input, output, delay = (ms) => sleep(ms, undefined, { ref: false }) } = at;
  const { values } = words;
  const terms = readTerms(words);
  const { dataDir: usual, ...settings } = settingsFrom({ ...env, DISCOVERY_URL: undefined });
  const dataDir = resolve(folder, values['data-dir'] ?? usual);
  const named = values.discovery ?? env.DISCOVERY_URL;
  const discovery = named ? readUrl(named) : null;
  const directory = values['channel-dir'];
  const given = directory ? { ...env, CHANNEL_DIR: resolve(folder, directory) } : env;
  const btcUsd = readRate(values['btc-usd'] ?? env.BTC_USD);
  // A key that is none is told at the start, before a host relies on it.
  const hasKey = buyerKey(env) !== null;
  const buyer = openBuyer({ ...settings, env: given, dataDir, btcUsd, discovery });
  try {
    const listRail = terms.limits.rail ?? (namesPayer(env) && !hasKey ? 'lightning' : null);
    const answers = join(dataDir, 'answers');
    const inSats = terms.limits.rail !== 'usdc' && terms.limits.via === null && namesPayer(env);
    const searched = discovery ?? new URL(terms.seller.origin);
    const own = { buyer, listRail, answers, inSats, discovery: searched };
    await serveHost({ ...terms, ...own, say, delay }, input, output);
  } finally {
    buyer.close();
  }
}

function readTerms({ values, positionals }: Words): Pick<Terms, 'seller' | 'limits' | 'askAbove' | 'askWithinMs'> {
  const [target] = positionals;
  if (positionals.length !== 1 || target === undefined) throw new UsageError('one seller is needed, as a URL');
  const { channel, gateway } = values;
  if (channel && gateway) throw new UsageError('--channel and --gateway are two ways to pay: name one');
  const rail = readRail(values.rail);
  if ((channel || gateway) && rail === 'lightning') throw new UsageError('--channel and --gateway pay in USDC');
  const stray = (['max-deposit', 'channel-dir'] as const).find((name) => values[name] !== undefined);
  if (!channel && stray) throw new UsageError(`--${stray} needs --channel`);
  const usdc = (name: 'ask-above' | 'max-usdc' | 'max-deposit'): bigint =>
    amountIn(parseUsdc(values[name] ?? ''), `--${name} is a decimal number with at most 6 decimals`);
  const sats = (name: 'ask-above-sats' | 'max-sats'): bigint =>
    amountIn(parseSats(values[name]), `--${name} is a whole number`);
  if (!/^[1-9]\d{0,4}$/.test(values['ask-within'])) throw new UsageError('--ask-within is a number of seconds');
  return {
    seller: readUrl(target),
    askWithinMs: Number(values['ask-within']) * 1000,
    askAbove: { units: usdc('ask-above'), msat: sats('ask-above-sats') },
    limits: {
      maxUnits: usdc('max-usdc'),
      maxMsat: sats('max-sats'),
      rail,
      protocol: null,
      via: channel ? 'channel' : gateway ? 'gateway' : null,
      maxDeposit: !channel ? 0n : values['max-deposit'] === undefined ? MAX_DEPOSIT : usdc('max-deposit'),
    },
  };
}

function readRail(text: string | undefined): Rail | null {
  if (text === undefined || text === 'usdc' || text === 'lightning') return text ?? null;
  throw new UsageError('--rail is usdc or lightning');
}

function amountIn(amount: bigint | null, fault: string): bigint {
  if (amount === null) throw new UsageError(fault);
  return amount;
}

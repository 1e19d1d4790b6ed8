import { resolve } from 'node:path';
import { openBuyer, settingsFrom } from './buyer.ts';
import { formatSats, formatUsdc, parseSats, parseUsdc } from './money.ts';
import { type ExitCode, paymentJson, type Surroundings } from './pay-command.ts';
import { readWords, UsageError } from './pay-options.ts';
import type { Budget, BudgetScope, Buyer, Payment } from './port.ts';
import { printable } from './printable.ts';
import { hostOf } from './seller.ts';

/** What `percall wallet --help` prints. */
export const WALLET_USAGE = `Shows the buyer's record of payments, and sets its budgets.

  percall wallet                       the budgets, what waits, and what the wallet holds
  percall wallet budget [--sats] [--call N] [--hour N] [--day N] [--host HOST N]
  percall wallet open [--json]         payments that wait for their answers
  percall wallet history [--json|--csv]
  percall wallet sweep                 give expired, unused payments back, by what the chain at RPC_URL shows
  percall wallet drop ID               give a waiting payment up: it stays counted, and its call may be paid anew
  percall wallet unpin HOST            accept that a host is paid at another address from now on

  budget           sets the most of each call, of the last hour and of the last day, and of the last day for one host.
                   In USDC over all ways to pay: sats count at the higher of the seller's rate and your own.
    --sats         the amounts are whole sats, and bound Lightning alone
    N              an amount, or "none" to remove the budget
  --data-dir D     the folder with the record; also PERCALL_DIR (default ~/.percall)
  --help           this text

Exit code: 0 done, 1 failed, 2 wrong usage.

Example: percall wallet budget --day 1 --host api.example 0.2`;

/** Runs the command with these words. */
export async function walletCommand(args: readonly string[], at: Surroundings): Promise<ExitCode> {
  try {
    const { values, positionals } = wordsIn(args);
    if (values.help) {
      await at.deliver(Buffer.from(`${WALLET_USAGE}\n`));
      return 0;
    }
    const usual = settingsFrom(at.env);
    const buyer = openBuyer({ ...usual, dataDir: resolve(at.folder, values['data-dir'] ?? usual.dataDir) });
    try {
      await serve(buyer, { values, positionals }, at);
      return 0;
    } finally {
      buyer.close();
    }
  } catch (error) {
    const usage = error instanceof UsageError;
    if (usage) at.say(`${WALLET_USAGE}\n`);
    at.say(`${usage ? 'usage' : 'failed'}: ${error instanceof Error ? error.message : error}`);
    return usage ? 2 : 1;
  }
}

function wordsIn(args: readonly string[]) {
  return readWords({
    args: [...args],
    allowPositionals: true,
    options: {
      call: { type: 'string' },
      hour: { type: 'string' },
      day: { type: 'string' },
      host: { type: 'string' },
      sats: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      csv: { type: 'boolean', default: false },
      'data-dir': { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
}

type Words = Pick<ReturnType<typeof wordsIn>, 'values' | 'positionals'>;

async function serve(buyer: Buyer, { values, positionals }: Words, at: Surroundings): Promise<void> {
  const [name, ...rest] = positionals;
  const print = (lines: readonly string[]): Promise<void> => at.deliver(Buffer.from(`${lines.join('\n')}\n`));
  if (name !== 'budget' && (values.call || values.hour || values.day || values.host || values.sats))
    throw new UsageError('amounts belong to percall wallet budget');
  if (name === 'budget') {
    setBudgets(buyer, values, rest);
    return print(budgetLines(buyer));
  }
  const isList = name === 'open' || name === 'history';
  const words = { drop: 1, unpin: 1 }[name ?? ''] ?? 0;
  if (rest.length !== words)
    throw new UsageError(words === 1 ? `${name} needs one word` : `${name ?? ''} takes no ${rest[0]}`);
  if (isList) return print(listLines(name === 'open' ? buyer.open() : buyer.history(), values));
  if (name === 'sweep') return print([`given back: ${await buyer.sweep()}`]);
  if (name === 'drop') {
    if (!buyer.drop(rest[0] ?? '')) throw new Error('no payment of this id waits');
    return print(['given up: it stays counted, and its call may be paid anew']);
  }
  if (name === 'unpin') return print([`forgotten: ${buyer.unpin(hostNamed(rest[0] ?? '') ?? '')}`]);
  if (name !== undefined) throw new UsageError(`there is no percall wallet ${name}`);
  const balance = await buyer.balance().catch((error: Error) => {
    at.say(`warning: ${error.message}`);
    return null;
  });
  const holds = balance === null ? [] : [`holds:   ${formatUsdc(balance)}`];
  await print([...holds, ...budgetLines(buyer), `waiting: ${buyer.open().length} payments`]);
}

/** A host as calls have it: in lower case and ASCII, without a port that goes without saying. Null for anything else. */
function hostNamed(text: string): string | null {
  const url = URL.parse(`${text.endsWith(':80') ? 'http' : 'https'}://${text}`);
  return url && `${url.protocol}//${url.host}/` === url.href && !/[/\s]/.test(text) ? hostOf(url) : null;
}

function setBudgets(buyer: Buyer, { call, hour, day, host, sats }: Words['values'], rest: readonly string[]): void {
  const unit = sats ? 'sats' : 'usdc';
  const amounts: [BudgetScope, string][] = [];
  for (const [scope, text] of [
    ['call', call],
    ['hour', hour],
    ['day', day],
  ] as const)
    if (text !== undefined) amounts.push([scope, text]);
  if (host !== undefined) {
    if (rest.length !== 1) throw new UsageError('--host HOST needs an amount: --host api.example 0.2');
    const named = hostNamed(host);
    if (named === null) throw new UsageError('--host is a host, as api.example or 127.0.0.1:4021');
    amounts.push([{ host: named }, rest[0] ?? '']);
  } else if (rest.length > 0) throw new UsageError(`--call, --hour, --day or --host says what ${rest[0]} bounds`);
  const read = amounts.map(([scope, text]): [BudgetScope, bigint | null] => {
    const most = text === 'none' ? null : sats ? parseSats(text) : parseUsdc(text);
    if (most === null && text !== 'none')
      throw new UsageError(
        `${text} is no amount: ${sats ? 'whole sats' : 'decimal USDC with at most 6 decimals'}, or none`,
      );
    return [scope, most];
  });
  for (const [scope, most] of read) buyer.budgets.set(scope, unit, most);
}

function budgetLines({ budgets }: Buyer): string[] {
  const all = budgets.list();
  if (all.length === 0) return ['budgets: none is set; each call has its own ceiling'];
  return all.map(({ scope, unit, most, spent }: Budget) => {
    const text = unit === 'usdc' ? formatUsdc : formatSats;
    const name = typeof scope === 'string' ? scope : `host ${scope.host}`;
    return `budget:  ${name}, ${text(most)}${scope === 'call' ? '' : `; ${text(spent)} of it is spent`}`;
  });
}

const COLUMNS = [
  'id',
  'at',
  'state',
  'call',
  'way',
  'units',
  'msat',
  'network',
  'payTo',
  'reference',
  'expiresAt',
  'transaction',
  'note',
] as const;

function listLines(payments: readonly Payment[], { json, csv }: Words['values']): string[] {
  const rows = payments.map(paymentJson);
  if (json) return [JSON.stringify(rows)];
  if (csv) return [COLUMNS.join(','), ...rows.map((row) => COLUMNS.map((name) => cell(row[name])).join(','))];
  if (payments.length === 0) return ['none'];
  return payments.map(({ id, at, state, call, way, amount, transaction, note }) => {
    const price = amount.msat === null ? formatUsdc(amount.units ?? 0n) : formatSats(amount.msat);
    const ends = [transaction && `transaction ${transaction}`, note].filter(Boolean).join('; ');
    const first = `${new Date(at * 1000).toISOString()}  ${state}  ${price} (${way})  ${printable(call)}`;
    return [first, ends, id].filter(Boolean).join('\n    ');
  });
}

/** A value of a CSV file. One that a spreadsheet would take for a formula begins with an apostrophe. */
function cell(value: unknown): string {
  const text = value === null || value === undefined ? '' : String(value);
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

#!/usr/bin/env node
import { join } from 'node:path';

// The command: its first word says what runs. Everything is loaded on demand, because `percall --help` must be quick,
// and
// because each part has its own needs.
//
// Buying runs on this Node and newer. The others use the service's database, whose binding crashes on an
// older Node than it is made for.
const BUYS_ON = [20, 12] as const;
const SERVES_ON = [24, 0] as const;

const USAGE = `percall: data by the call, bought and sold.

  percall pay URL          buy one answer, in USDC or in bitcoin      percall pay https://api.example/v1/paid/x
  percall wallet           budgets, what waits, what was bought       percall wallet budget --day 1
  percall mcp SELLER       its tools for a host of models (MCP)       percall mcp https://api.example
  percall start            the service, by its environment            PORT=4021 percall start
  percall demo             the service on a local chain, play money   percall demo
  percall ledger           the service's books                        percall ledger status
  percall backup           a copy of the ledger                       percall backup --to DIR
  percall COMMAND --help   what a command takes, and its exit codes

Exit codes of pay: 0 answered, 1 failed before paying, 2 wrong usage, 3 refused before paying, 4 paid and no answer yet:
run it again, 5 the seller says that nothing was charged. Of the others: 0 done, 1 failed, 2 wrong usage.`;

/** The package's folder: of the sources, or of the installed tarball. */
const ROOT = join(import.meta.dirname, '..');
const NEWLINE = 0x0a;

const say = (line: string): void => console.error(line);

/** Writes an answer. A shell's prompt, and the next answer in a file, begin on a line of their own. */
const deliver = (body: Buffer): Promise<void> =>
  new Promise<void>((written, reject) => {
    const shown = process.stdout.isTTY ? forTerminal(body) : body;
    const line = shown.at(-1) === NEWLINE ? shown : Buffer.concat([shown, Buffer.of(NEWLINE)]);
    process.stdout.write(line, (error) => (error ? reject(error) : written()));
  });

/** A seller's bytes as a terminal may have them: without the characters that could change what it shows. */
function forTerminal(body: Buffer): Buffer {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is taken out.
  return Buffer.from(body.toString('utf8').replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, ' '), 'utf8');
}

/** A line on a terminal that shows how long something takes. */
function progress(text: string | null): void {
  if (process.stderr.isTTY) process.stderr.write(text === null ? '\r\u001b[K' : `\r\u001b[K${text}`);
}

const around = () => ({ env: process.env, folder: process.cwd(), say, deliver, progress });

/** Null where this Node is new enough, else what is needed. */
function lacking([major, minor]: readonly [number, number], command: string): string | null {
  const [ownMajor = 0, ownMinor = 0] = process.versions.node.split('.').map(Number);
  if (ownMajor > major || (ownMajor === major && ownMinor >= minor)) return null;
  return `percall ${command} needs Node ${major}.${minor} or newer; this is ${process.versions.node}`;
}

/** Runs a program of the service in this process, with the words after the command. */
async function runHere(words: readonly string[], load: () => Promise<unknown>): Promise<number> {
  process.argv = [process.argv[0] ?? 'node', process.argv[1] ?? 'percall', ...words];
  await load();
  return Number(process.exitCode ?? 0);
}

const COMMANDS: Record<string, (words: readonly string[]) => Promise<number>> = {
  pay: async (words) => (await import('./pay-command.ts')).payCommand(words, around()),
  wallet: async (words) => (await import('./wallet-command.ts')).walletCommand(words, around()),
  mcp: async (words) => {
    // A line of anything else on standard output would end the protocol.
    console.log = console.error;
    const streams = { input: process.stdin, output: process.stdout };
    return (await import('./mcp-command.ts')).mcpCommand(words, { ...around(), ...streams });
  },
  ledger: (words) => runHere(words, () => import('../scripts/ledger.ts')),
  backup: (words) => runHere(words, () => import('../scripts/backup.ts')),
  start: async () => (await import('./start.ts')).startService(ROOT, say),
  demo: async (words) => (await import('./start.ts')).startDemo(ROOT, words, say),
};
const BUYING = new Set(['pay', 'wallet', 'mcp']);

async function main([name, ...words]: readonly string[]): Promise<number> {
  if (name === undefined || name === '--help' || name === 'help') {
    await deliver(Buffer.from(`${USAGE}\n`));
    return name === undefined ? 2 : 0;
  }
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (!command) {
    say(`${USAGE}\n\nusage: there is no percall ${name.slice(0, 40)}`);
    return 2;
  }
  const lacks = lacking(BUYING.has(name) ? BUYS_ON : SERVES_ON, name);
  if (lacks !== null) {
    say(lacks);
    return 1;
  }
  return command(words);
}

// Files of payments and channels hold signatures.
process.umask(0o077);
// A reader may have gone. Its write then fails, and the command says so; without a listener Node would end it before
// that.
process.stdout.on('error', () => {});
process.exitCode = await main(process.argv.slice(2));

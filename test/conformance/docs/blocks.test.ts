import { execFile, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import ts from 'typescript';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { formatUsdc } from '../../../cli/money.ts';
import { catalogue } from '../../../src/catalogue/catalogue.ts';
import { untilChannelsAreOffered } from '../../support/channels/offered.ts';
import { type Block, fencedBlocks } from '../../support/documents.ts';
import { CHILD_ENV } from '../../support/service/child-env.ts';
import { ownPort } from '../../support/service/own-port.ts';
import { openExamples, ROOT } from '../../support/service/shown-code.ts';
import { startTerminal, type Terminal } from '../../support/service/terminal.ts';

// Every block of the documents for buyers and sellers. What is shown is run as it is printed, in the documents' order.
// A comment before a block says what the reader does with it, where that is not to paste it:
//   <!-- run: npx node buy.ts -->   save it as the file that the command names, and run the command
//   <!-- demo: … -->                run it in a terminal of its own
//   <!-- serve: … -->               the same, beside the demo, with what was exported
//   <!-- outside: … -->             it needs somebody else, so it is only parsed

const DOCUMENTS = ['README.md', 'docs/paying.md', 'docs/selling.md'];
const blocks = DOCUMENTS.flatMap((document) => fencedBlocks(document));

const placed = (of: readonly Block[]) => of.map((block) => [`${block.document}:${block.line}`, block] as const);

/** What a reader does with a block. Null: the block is marked wrongly. */
type Use = 'read' | 'paste' | 'run' | 'demo' | 'serve' | 'outside';
function useOf({ language, mark }: Block): Use | null {
  if (mark?.startsWith('outside: ')) return 'outside';
  if (language === 'text' || language === 'json') return mark === null ? 'read' : null;
  if (language === 'sh' && mark !== null)
    return mark.startsWith('demo: ') ? 'demo' : mark.startsWith('serve: ') ? 'serve' : null;
  if (language === 'sh') return 'paste';
  return mark?.startsWith('run: ') && ['ts', 'python'].includes(language) ? 'run' : null;
}

/** Why a block is no text of its language; null when it is. */
function syntaxFault({ language, code }: Block): string | null {
  if (language === 'json') return faultBy(() => JSON.parse(code));
  if (language === 'sh') return spawnSync('bash', ['-n'], { input: code, encoding: 'utf8' }).stderr || null;
  if (language === 'python') {
    const parse = 'import ast, sys; ast.parse(sys.stdin.read())';
    return spawnSync('python3', ['-c', parse], { input: code, encoding: 'utf8' }).stderr || null;
  }
  if (language !== 'ts') return null;
  const { diagnostics = [] } = ts.transpileModule(code, { reportDiagnostics: true });
  return diagnostics.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, ' ')).join('; ') || null;
}

function faultBy(parse: () => unknown): string | null {
  try {
    parse();
    return null;
  } catch (error) {
    return String(error);
  }
}

/** What would reach another program than the demo, or none: an address that stands in the block, and a placeholder. */
const FIXED = /localhost|127\.0\.0\.1|\bHOST\b|4021/;
const PLACEHOLDER = /…/;

function faultsOf(block: Block): string[] {
  const [use, syntax] = [useOf(block), syntaxFault(block)];
  const isRun = use === 'paste' || use === 'run' || use === 'serve';
  return [
    ...(use === null ? [`a block of ${block.language} with the mark ${block.mark}`] : []),
    ...(syntax === null ? [] : [syntax]),
    ...(use !== 'read' && FIXED.test(block.code) ? ['names an address in place of $ORIGIN'] : []),
    ...(isRun && PLACEHOLDER.test(block.code) ? ['has a placeholder'] : []),
  ];
}

describe('a block of a document', () => {
  test.each(placed(blocks))('%s is marked, is text of its language, and names no address', (_place, block) => {
    expect(faultsOf(block)).toEqual([]);
  });

  test('is found, whatever its use', () => {
    for (const use of ['read', 'paste', 'run', 'demo', 'serve', 'outside'])
      expect(blocks.map(useOf), `blocks to ${use}`).toContain(use);
    expect(blocks.filter((block) => useOf(block) === 'demo')).toHaveLength(1);
    expect(blocks.length).toBeGreaterThan(15);
  });

  test.each([
    ['a language without a use', '```js\nf();\n```\n', 'a block of js with the mark null'],
    ['a program without a command', '```ts\nf();\n```\n', 'a block of ts with the mark null'],
    ['a mark that nobody knows', '<!-- later: x -->\n```sh\nls\n```\n', 'a block of sh with the mark later: x'],
    ['shell that is none', '```sh\necho "\n```\n', 'unexpected EOF'],
    ['TypeScript that is none', '<!-- run: npx node a.ts -->\n```ts\nconst = 1;\n```\n', 'expected'],
    ['JSON that is none', '```json\n{ "a": 1, … }\n```\n', 'SyntaxError'],
    ['another program’s port', '```sh\ncurl http://127.0.0.1:4021/v1/fees\n```\n', 'in place of $ORIGIN'],
    ['a placeholder', '```sh\ncurl "$ORIGIN/v1/…"\n```\n', 'has a placeholder'],
  ])('with %s is refused', (_what, text, fault) => {
    const [block] = fencedBlocks('README.md', text);
    expect(faultsOf(block!).join()).toContain(fault);
  });
});

/** The route that most blocks buy. */
const price = catalogue.find(({ path, price }) => path === '/fees/estimate' && price)?.price ?? { usd: '', units: 0n };
/** What is left of a deposit of 1 USDC after the program's three calls and the shell's one. */
const LEFT = formatUsdc(1_000_000n - 4n * price.units);

/** What the output of some blocks must show, by a text of the block. */
const SHOWN: readonly (readonly [string, RegExp])[] = [
  ['payment-required', /^\{"x402Version":2/],
  ['new ExactEvmScheme', /0x[0-9a-f]{64}\n$/],
  ['--max-usdc', new RegExp(`^paid: +${price.usd} USDC, transaction 0x[0-9a-f]{64}$`, 'm')],
  ['examples/channel.ts', /^200\n200\n200\n$/],
  ['--refund', new RegExp(`^refund: +${LEFT}, transaction 0x[0-9a-f]{64}`, 'm')],
  ['examples/l402.ts', /gas: \d+/],
  ['$SELLER_ORIGIN', /^listed: +at the most 4 sat /m],
  ['--max-sats', /^paid: +\d+ sat by PAYER_URL, payment hash [0-9a-f]{64}$/m],
  ['/facilitator/settle', /^\{"success":true,"transaction":"[0-9a-f]{64}"/],
];

const WRONG_SERVER = 'this is the wrong server';
const SLOW = Boolean(process.env.SLOW);

/** Takes the demo's usual port, unless another program has it. Returns how often it was asked. */
async function takePort() {
  const asked: string[] = [];
  const server = createServer(({ method, url, headers }, response) => {
    asked.push(`${method} ${url} by ${headers['user-agent']}`);
    response.end(WRONG_SERVER);
  }).listen(4021, '127.0.0.1');
  await Promise.race([once(server, 'listening'), once(server, 'error')]).catch(() => {});
  return { asked, stop: async () => void server.close() };
}

/** A folder like a fresh clone after `npm ci`. */
function cloneProject(): string {
  const clone = mkdtempSync(join(tmpdir(), 'percall-clone-'));
  for (const name of [
    'cli',
    'dev',
    'src',
    'scripts',
    'docs',
    'openapi',
    'package.json',
    'tsconfig.json',
    '.npmrc',
    'README.md',
  ])
    cpSync(join(ROOT, name), join(clone, name), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(clone, 'node_modules'));
  // curl ends with a failure where the answer is no success.
  writeFileSync(join(clone, '.curlrc'), 'fail\n');
  mkdirSync(join(clone, 'tmp'));
  return clone;
}

/** The processes that run in a folder, or a program of it. */
function processesIn(folder: string): string[] {
  return readdirSync('/proc').flatMap((pid) => {
    if (!/^\d+$/.test(pid)) return [];
    try {
      const line = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
      return readlinkSync(`/proc/${pid}/cwd`).startsWith(folder) || line.includes(folder) ? [`${pid} ${line}`] : [];
    } catch {
      return [];
    }
  });
}

/** Starts `npm run demo` in a terminal of its own. What it prints to export is exported. */
const besideDemo = (clone: string, command: string): Promise<Terminal> =>
  startTerminal({
    folder: clone,
    command,
    env: { ...CHILD_ENV, HOME: process.env.HOME, TMPDIR: join(clone, 'tmp') },
    ready: /^Open http/m,
  });

/** Starts a service as the demo configures it, which takes a third of the demo's time. */
async function besideService(): Promise<Terminal> {
  const { network, service, stop } = await openExamples({ lightning: true, channels: true });
  const { payUrl = '', lndUrl = '', macaroon = '' } = network.lightning ?? {};
  await untilChannelsAreOffered(`${service.origin}/v1/paid/fees/estimate`);
  await vi.waitFor(async () => expect((await service.get('/v1/fees/estimate')).status).toBe(200), 60_000);
  const exported = {
    ORIGIN: service.origin,
    BUYER_PRIVATE_KEY: network.buyer.privateKey,
    RPC_URL: network.rpcUrl,
    PAYER_URL: payUrl,
    LND_URL: lndUrl,
    LND_MACAROON: macaroon,
  };
  return { exported, stop };
}

const hasCurl = spawnSync('curl', ['--version']).status === 0;

// The later blocks use what the earlier ones leave.
describe.skipIf(!hasCurl)(`beside ${SLOW ? 'npm run demo' : 'a service'}`, { shuffle: false }, () => {
  const run = blocks.filter((block) => ['paste', 'run', 'serve'].includes(useOf(block) ?? ''));
  const [demo] = blocks.filter((block) => useOf(block) === 'demo');
  // `npm ci` would change the packages under the other tests.
  const [, demoCommand = ''] = /^npm ci && (npm run demo)\b/.exec(demo?.code ?? '') ?? [];
  let clone: string;
  let port: Awaited<ReturnType<typeof takePort>>;
  let beside: Terminal;
  const servers: Terminal[] = [];
  beforeAll(async () => {
    port = await takePort();
    clone = cloneProject();
    beside = await (SLOW ? besideDemo(clone, demoCommand) : besideService());
    expect(beside.exported.ORIGIN).not.toContain(':4021');
  });
  afterAll(async () => {
    for (const server of servers) await server.stop();
    await beside?.stop();
    await port?.stop();
    if (clone) rmSync(clone, { recursive: true, force: true });
  });

  const environment = () => {
    const exported = [beside, ...servers].map((terminal) => terminal.exported);
    return Object.assign({ ...CHILD_ENV, HOME: clone, CURL_HOME: clone, NO_PROXY: '*' }, ...exported);
  };

  /** Starts a server that a reader runs in a terminal of its own. It serves on a free port in place of its own. */
  async function serve(command: string) {
    const env = { ...environment(), SELLER_ORIGIN: `http://127.0.0.1:${await ownPort()}` };
    servers.push(await startTerminal({ folder: clone, command, env, ready: /^export SELLER_ORIGIN=/m }));
  }

  function paste(line: string) {
    const env = environment();
    return new Promise<{ code: number; stdout: string; stderr: string }>((resolve) => {
      execFile('bash', ['-c', `set -e\n${line}`], { cwd: clone, env, maxBuffer: 1e8 }, (error, stdout, stderr) => {
        resolve({ code: error ? Number(error.code) : 0, stdout, stderr });
      });
    });
  }

  // Without SLOW the demo does not start. What its program loads is looked for all the same.
  test('the demo’s program finds its modules in a fresh clone', async () => {
    const { code, stdout, stderr } = await paste(`${demoCommand} -- --help`);
    expect([code, stdout], stderr).toEqual([0, expect.stringContaining('Starts a local chain')]);
  });

  test.each(placed(run))('%s runs as it is printed', async (_place, block) => {
    const { code, mark } = block;
    if (useOf(block) === 'serve') return serve(code);
    const command = mark?.slice('run: '.length) ?? code;
    if (mark) writeFileSync(join(clone, String(command.split(' ').at(-1))), code);
    const result = await paste(command);
    const output = result.stdout + result.stderr;
    expect(result.code, output).toBe(0);
    expect(output).not.toContain(WRONG_SERVER);
    expect(output).not.toMatch(/"success":false,"errorReason":"/);
    for (const [text, shown] of SHOWN) {
      const said = [result.stdout, result.stderr].find((stream) => shown.test(stream));
      if (code.includes(text)) expect(said, `${shown} in ${output}`).toBeDefined();
    }
  });

  test('the programs say which variable is missing', async () => {
    const ofBlocks = run.flatMap(({ mark }) => (mark?.startsWith('run: ') ? [mark.slice('run: '.length)] : []));
    const ofFiles = run.flatMap(({ code }) => code.match(/^npx node docs\/examples\/\S+$/gm) ?? []);
    expect([ofBlocks.length, ofFiles.length]).toEqual([1, 4]);
    for (const command of [...ofBlocks, ...ofFiles]) {
      const file = join(clone, String(command.split(' ').at(-1)));
      const [name = ''] = /\b(?:BUYER_PRIVATE_KEY|PAYER_URL|LND_URL)\b/.exec(readFileSync(file, 'utf8')) ?? [];
      const { code: status, stderr } = await paste(`${name}= ${command}`);
      expect([status, stderr]).toEqual([1, expect.stringMatching(new RegExp(`Error: .*${name}.* (?:not|be) set`))]);
    }
  });

  test('no block has asked the program on port 4021, and none has left a process', async () => {
    expect(port.asked).toEqual([]);
    for (const server of servers) await server.stop();
    if (SLOW) await beside.stop();
    if (process.platform === 'linux') await expect.poll(() => processesIn(clone)).toEqual([]);
  });
});

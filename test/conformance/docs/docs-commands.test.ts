import { execFile, spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { embeddedEnvironment } from '../../../dev/serve.ts';
import { commandsOf, readText } from '../../support/documents.ts';
import { ask } from '../../support/ledger/kill-ledger.ts';
import { countRunningTime } from '../../support/running-time.ts';
import { CHILD_ENV } from '../../support/service/child-env.ts';
import { type Examples, openExamples, ROOT } from '../../support/service/shown-code.ts';
import { buyOnce } from '../../support/usdc/buyer.ts';

// Takes the commands of operators from docs/ and runs them unchanged, with the paths of a local service. Those of buyers
// and sellers run in blocks.test.ts.

const selling = commandsOf(readText('docs/selling.md'));
const operating = commandsOf(readText('docs/operating.md'));
const hasCurl = spawnSync('curl', ['--version']).status === 0;

countRunningTime();

let examples: Examples;
beforeAll(async () => {
  examples = await openExamples();
});
afterAll(() => examples?.stop());

/** The one command that matches the pattern. */
function shown(commands: readonly string[], pattern: RegExp): string {
  const found = commands.filter((command) => pattern.test(command));
  expect(found, `commands that match ${pattern}`).toHaveLength(1);
  return String(found[0]);
}

/** Runs a command line in the repository as a reader would paste it, after replacing each placeholder once. */
async function run(command: string, placeholders: Record<string, string>, env: Record<string, string> = {}) {
  let line = command;
  for (const [placeholder, value] of Object.entries(placeholders)) {
    expect(line).toContain(placeholder);
    line = line.replace(placeholder, value);
  }
  return new Promise<{ code: number; stdout: string; stderr: string }>((resolve) => {
    const given = { ...CHILD_ENV, HOME: process.env.HOME, NO_PROXY: '*', ...env };
    execFile('sh', ['-c', line], { cwd: ROOT, env: given }, (error, stdout, stderr) => {
      resolve({ code: error ? Number(error.code) : 0, stdout, stderr });
    });
  });
}

describe.skipIf(!hasCurl)(`docs/selling.md${hasCurl ? '' : ' (skipped: curl is not installed)'}`, () => {
  test('shows how a route is listed: the URL is read, and a private address is refused', async () => {
    const { service } = examples;
    const placeholders = { 'https://seller.example': 'https://127.0.0.1' };
    const { stdout } = await run(shown(selling, /\/v1\/market" /), placeholders, { ORIGIN: service.origin });
    expect(JSON.parse(stdout)).toMatchObject({ code: 'url_not_public', charged: false });
  });
});

describe('docs/operating.md', () => {
  const environment = () => ({ DATA_DIR: examples.service.dataDir });

  test('shows how to look at the ledger while the service runs', async () => {
    const { network, service } = examples;
    expect((await buyOnce(network, service.origin, '/v1/paid/fees/estimate')).answer.status).toBe(200);
    const settled = "SELECT count(*) FROM usdc_payments WHERE state = 'settled'";
    const count = ask<number>(join(service.dataDir, 'ledger.db'), settled);
    expect(count).toBeGreaterThan(0);
    const status = await run(shown(operating, /ledger -- status/), {}, environment());
    expect([status.code, status.stdout]).toEqual([0, expect.stringMatching(`usdc +settled +${count}\\b`)]);
    const list = await run(shown(operating, /ledger -- list/), {}, environment());
    expect([list.code, list.stdout]).toEqual([0, expect.not.stringContaining('settled')]);
    const sales = join(examples.folder, 'sales.csv');
    expect(await run(shown(operating, /ledger -- export/), { 'sales.csv': sales }, environment())).toMatchObject({
      code: 0,
    });
    // npm itself prints nothing above the table.
    expect(readFileSync(sales, 'utf8').split('\r\n')[0]).toMatch(/^[a-z_]+(,[a-z_]+)+$/);
  });

  test('shows that reconcile refuses beside a running service, which reconciles by itself', async () => {
    const configured = { ...embeddedEnvironment(examples.network), ...environment() };
    const { code, stderr } = await run(shown(operating, /ledger -- reconcile/), {}, configured);
    expect([code, stderr]).toEqual([1, expect.stringContaining('reconciles by itself')]);
  });

  test('shows how to copy the ledger and the chain data', async () => {
    const copies = join(examples.folder, 'copies');
    mkdirSync(copies);
    const ledger = await run(shown(operating, /backup -- --to/), { '/backups': copies }, environment());
    expect([ledger.code, ledger.stderr]).toEqual([0, expect.stringContaining('copied and checked')]);
    // Without `--every` it ends after one copy.
    const chain = shown(operating, /backup -- --chain/).replace(/ --every \d+$/, '');
    expect(await run(chain, { '/srv/replica': copies }, environment())).toMatchObject({ code: 0 });
    expect(readdirSync(copies).sort()).toEqual(['chain.db', expect.stringMatching(/^ledger-\d{8}T\d{6}Z\.db$/)]);
  });
});

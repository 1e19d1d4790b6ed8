import { execFile, execFileSync } from 'node:child_process';
import { copyFileSync, cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { bytesToHex } from '../../../src/lib/hex.ts';
import { fencedBlocks } from '../../support/documents.ts';
import type { Run } from '../../support/service/operator-command.ts';
import { type Service, startService } from '../../support/service/service.ts';
import { newBuyer } from '../../support/usdc/buyer.ts';

// A fresh machine: `npm pack` in a clone, then `npx` in an empty folder, against a running service. It installs the
// packages with machine code from npm's registry, so only SLOW=1 does it.

const ROOT = join(import.meta.dirname, '../../..');
const MAX_BYTES = 6 * 1024 * 1024;
/** Without the project's own Node 24 in front: what a reader's machine has. */
const PATH = (process.env.PATH ?? '')
  .split(':')
  .filter((folder) => !folder.includes('node_modules'))
  .join(':');

let folder: string;
let tarball: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'percall-tarball-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function run(command: string, args: readonly string[], cwd: string, env: Record<string, string> = {}): Promise<Run> {
  const given = { PATH, HOME: join(folder, 'home'), npm_config_cache: join(folder, 'cache'), ...env };
  return new Promise((resolve) => {
    execFile(command, args, { cwd, env: given, maxBuffer: 1e8 }, (error, stdout, stderr) => {
      resolve({ code: error ? Number(error.code) : 0, stdout, stderr });
    });
  });
}

/** Why the registry cannot be asked; null where it answers. */
function unreachable(): string | null {
  if (!process.env.SLOW) return 'SLOW=1 runs it';
  try {
    execFileSync('npm', ['view', 'libsql', 'version', '--fetch-retries=0'], {
      env: { ...process.env, PATH },
      stdio: 'pipe',
    });
    return null;
  } catch {
    return "npm's registry does not answer";
  }
}

const missing = unreachable();

describe.skipIf(missing !== null)(
  `the tarball${missing === null ? '' : ` (skipped: ${missing})`}`,
  { shuffle: false },
  () => {
    test('is packed from a clone, which is as before afterwards: bundles alone, and exact packages with machine code', async () => {
      const clone = join(folder, 'clone');
      const parts = [
        'cli',
        'src',
        'scripts',
        'docs',
        'package.json',
        'package-lock.json',
        '.npmrc',
        'README.md',
        'LICENSE',
      ];
      for (const part of parts) cpSync(join(ROOT, part), join(clone, part), { recursive: true });
      symlinkSync(join(ROOT, 'node_modules'), join(clone, 'node_modules'));
      // npm puts the project's own programs, Node among them, in front for its scripts.
      const packed = await run('npm', ['pack'], clone);
      expect(packed.code, packed.stderr).toBe(0);
      const [name = ''] = readdirSync(clone).filter((one) => one.endsWith('.tgz'));
      tarball = join(clone, name);
      expect(statSync(tarball).size).toBeLessThan(MAX_BYTES);
      expect(readFileSync(join(clone, 'package.json'), 'utf8')).toBe(readFileSync(join(ROOT, 'package.json'), 'utf8'));

      const files = execFileSync('tar', ['tzf', tarball], { encoding: 'utf8' }).trim().split('\n');
      expect(files.filter((file) => /\.map$|\.ts$|\/test\/|\/scripts\//.test(file))).toEqual([]);
      expect(files).toEqual(
        expect.arrayContaining(['package/LICENSE', 'package/dist/LICENSES.txt', 'package/README.md']),
      );
      const manifest = JSON.parse(execFileSync('tar', ['xzOf', tarball, 'package/package.json'], { encoding: 'utf8' }));
      expect(Object.keys(manifest.dependencies)).toEqual(['better-sqlite3', 'libsql', 'pg', 'secp256k1', 'uplot']);
      expect(Object.values(manifest.dependencies).join()).toMatch(/^[\d.,]+$/);
      expect([manifest.bin, manifest.private]).toEqual([{ percall: 'dist/cli/percall.js' }, true]);
    });

    describe('in an empty folder', { shuffle: false }, () => {
      let network: EmbeddedNetwork;
      let service: Service;
      let empty: string;
      beforeAll(async () => {
        network = await startEmbeddedNetwork();
        service = await startService(network);
        empty = mkdtempSync(join(folder, 'empty-'));
        copyFileSync(tarball, join(empty, basename(tarball)));
      });
      afterAll(async () => {
        await service?.stop();
        await network?.stop();
      });
      const percall = (words: string[], env: Record<string, string> = {}) =>
        run('npx', ['--yes', `./${basename(tarball)}`, ...words], empty, env);

      test('shows its help, and each command its own', async () => {
        const { code, stdout, stderr } = await percall(['--help']);
        expect(code, stderr).toBe(0);
        expect(stdout).toContain('percall pay URL');
        for (const command of ['pay', 'wallet', 'mcp']) {
          const help = await percall([command, '--help']);
          expect([help.code, help.stdout], help.stderr).toEqual([0, expect.stringContaining('Example: percall')]);
        }
        expect((await percall(['nothing'])).code).toBe(2);
      });

      test('buys from a running service, under a budget, and shows what it bought', async () => {
        const { privateKey } = await newBuyer(network, 1_000_000n);
        const env = { BUYER_PRIVATE_KEY: bytesToHex(privateKey), RPC_URL: network.rpcUrl };
        const url = `${service.origin}/v1/paid/fees/estimate`;
        const set = await percall(['wallet', 'budget', '--day', '0.0005']);
        expect(set.code, set.stderr).toBe(0);
        const bought = await percall(['pay', url], env);
        expect(bought.code, bought.stderr).toBe(0);
        expect(JSON.parse(bought.stdout)).toHaveProperty('gas');
        expect((await percall(['pay', `${url}?gas=70001`], env)).code).toBe(3);
        const history = await percall(['wallet', 'history', '--json']);
        expect(JSON.parse(history.stdout)).toMatchObject([{ state: 'answered', units: '500', call: `GET ${url}` }]);
        expect(readdirSync(empty)).toEqual([basename(tarball)]);
      });

      test('serves a host, whose client buys a tool within the budget, and ends with it', async () => {
        const { privateKey } = await newBuyer(network, 1_000_000n);
        await percall(['wallet', 'budget', '--day', '1']);
        const [shown] = fencedBlocks('docs/clients.md').filter(({ language }) => language === 'json');
        const { command, args } = JSON.parse(shown?.code ?? '').mcpServers.percall as {
          command: string;
          args: string[];
        };
        const own = args.map((word) => word.replace(/^.*\.tgz$/, `./${basename(tarball)}`));
        const transport = new StdioClientTransport({
          command,
          args: own.map((word) => (word === 'https://api.example' ? service.origin : word)),
          cwd: empty,
          env: {
            PATH,
            HOME: join(folder, 'home'),
            npm_config_cache: join(folder, 'cache'),
            BUYER_PRIVATE_KEY: bytesToHex(privateKey),
          },
          stderr: 'pipe',
        });
        const said: Buffer[] = [];
        transport.stderr?.on('data', (part: Buffer) => said.push(part));
        const client = new Client({ name: 'host', version: '1' });
        const faults: Error[] = [];
        client.onerror = (error) => faults.push(error);
        try {
          await client.connect(transport as never);
          const { tools } = await client.listTools();
          expect(tools.map(({ name }) => name)).toContain('paid_fees_estimate');
          const answer = await client.callTool({ name: 'paid_fees_estimate', arguments: { gas: 70_002 } });
          expect(JSON.stringify(answer), Buffer.concat(said).toString()).toContain('paid 0.0005 USDC');
        } finally {
          await client.close();
        }
        expect(faults).toEqual([]);
        const [bought] = JSON.parse((await percall(['wallet', 'history', '--json'])).stdout);
        expect(bought).toMatchObject({ state: 'answered', units: '500' });
      });

      test('says which Node the service needs, or starts it, and what the demonstration needs', async () => {
        const major = Number((await run('node', ['-p', 'process.versions.node'], empty)).stdout.split('.')[0]);
        const started = await percall(['start'], { NETWORK: 'nowhere' });
        expect(started.code).not.toBe(0);
        expect(started.stderr + started.stdout).toContain(major < 24 ? 'needs Node 24.0 or newer' : 'NETWORK');
        if (major >= 24) expect((await percall(['demo'])).stderr).toContain('needs a clone of the project');
      });
    });
  },
);

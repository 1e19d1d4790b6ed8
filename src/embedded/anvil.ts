import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type GuardedChild, startGuarded } from './child.ts';

/** The architecture's name in the node's npm packages. */
const ARCHITECTURES: Partial<Record<NodeJS.Architecture, string>> = { x64: 'amd64', arm64: 'arm64' };

/**
 * The real binary inside the platform's npm package.
 * The package's own launcher is not used: it is a Node process in between, and a kill would end it instead of the node.
 */
function anvilBinary(): string {
  const platform = `${process.platform}-${ARCHITECTURES[process.arch] ?? process.arch}`;
  const name = `@foundry-rs/anvil-${platform}`;
  try {
    const launcher = createRequire(import.meta.url).resolve('@foundry-rs/anvil/package.json');
    const manifest = createRequire(launcher).resolve(`${name}/package.json`);
    JSON.parse(readFileSync(manifest, 'utf8'));
    return join(dirname(manifest), 'bin', process.platform === 'win32' ? 'anvil.exe' : 'anvil');
  } catch (cause) {
    throw new Error(`the embedded network needs the package ${name}, which is not installed: run npm ci`, { cause });
  }
}

/** Time-out of a node's start, which takes about 0.1 s on an idle machine. */
const START_MS = 20_000;

/** Blocks whose state is kept in memory: four minutes of half-second blocks. Without the limit a long demo would fill the disk. */
const STATES_KEPT = 500;

/** A started node. */
export interface Anvil {
  readonly process: GuardedChild;
  readonly port: number;
}

/**
 * Starts the node on loopback, without accounts and without mining (the miner makes the blocks).
 * With port 0 the system chooses a port and the node reports it, so that two nodes that start at once do not collide.
 */
export async function startAnvil(options: { chainId: number; port: number; baseFeeWei: bigint }): Promise<Anvil> {
  let output = '';
  const args = ['--host', '127.0.0.1', '--port', String(options.port), '--chain-id', String(options.chainId)];
  args.push('--accounts', '0', '--no-mining', '--hardfork', 'osaka', '--gas-limit', '30000000');
  args.push('--base-fee', String(options.baseFeeWei), '--prune-history', String(STATES_KEPT), '--color', 'never');
  const child = await startGuarded(anvilBinary(), args, {
    onOutput: (text) => {
      if (output.length < 16_384) output += text;
    },
  });
  const deadline = Date.now() + START_MS;
  while (Date.now() < deadline) {
    const port = /Listening on 127\.0\.0\.1:(\d+)/.exec(output)?.[1];
    if (port !== undefined) return { process: child, port: Number(port) };
    if (child.ended() !== null) break;
    await delay(20);
  }
  const how = child.ended() ?? `silent for ${START_MS / 1000} s`;
  await child.stop(0);
  throw new Error(`the embedded network's node did not start (${how}):\n${child.tail()}`);
}

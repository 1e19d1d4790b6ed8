import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  decodePaymentSignatureHeader,
  encodePaymentRequiredHeader,
  encodePaymentResponseHeader,
} from '@x402/core/http';
import type { PaymentRequired } from '@x402/core/types';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ARC, PRICE } from '../support/cli/model-seller.ts';
import { KEY, newFolder } from '../support/cli/open-buyer.ts';
import { walletHere } from '../support/cli/wallet-here.ts';
import { seed, seededRandom } from '../support/random.ts';
import { CHILD_ENV } from '../support/service/child-env.ts';
import { programFile } from '../support/service/programs.ts';

// The program itself, two at a time over one wallet, killed with kill -9 at any moment. The seller keeps the books.

const ROUNDS = process.env.SLOW ? 150 : 5;
const CALLS = 3;

const random = seededRandom('buyer-kill');
/** The nonces that were presented for each call, and how often each call was charged. */
const presented = new Map<string, Set<string>>();
const charged = new Map<string, string>();
let isCalm = false;
let server: Server;
let origin: string;

beforeAll(async () => {
  server = createServer((request, response) => {
    const target = request.url ?? '';
    if (target === '/openapi.json') return void response.writeHead(404).end();
    const shown = request.headers['payment-signature'];
    if (typeof shown !== 'string') {
      const entry = { ...ARC, scheme: 'exact', amount: PRICE.toString(), payTo: `0x${'5e'.repeat(20)}` };
      const accepts = [{ ...entry, maxTimeoutSeconds: 600, extra: { name: 'USDC', version: '2' } }];
      const challenge = { x402Version: 2, resource: { url: origin + target }, accepts } as unknown as PaymentRequired;
      return void response.writeHead(402, { 'payment-required': encodePaymentRequiredHeader(challenge) }).end('{}');
    }
    const { nonce } = decodePaymentSignatureHeader(shown).payload.authorization as { nonce: string };
    presented.set(target, (presented.get(target) ?? new Set()).add(nonce));
    if (!isCalm && random() < 0.3) return void response.writeHead(503, { 'retry-after': '1' }).end('{}');
    charged.set(nonce, target);
    if (!isCalm && random() < 0.3) return void response.destroy();
    const receipt = encodePaymentResponseHeader({ success: true, transaction: nonce, network: 'eip155:5042' });
    response.writeHead(200, { 'payment-response': receipt }).end(target);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => server.close());

/** Runs the program until it ends or is killed. */
async function pay(folder: string, target: string, killAfterMs: number | null) {
  const child = spawn(process.execPath, [programFile('percall'), 'pay', origin + target], {
    env: { ...CHILD_ENV, PERCALL_DIR: join(folder, '.percall'), BUYER_PRIVATE_KEY: KEY },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const said: Buffer[] = [];
  child.stdout.on('data', (part: Buffer) => said.push(part));
  child.stderr.resume();
  const ended = once(child, 'close');
  if (killAfterMs !== null) await Promise.race([sleep(killAfterMs), ended]).then(() => child.kill('SIGKILL'));
  const [code] = (await ended) as [number | null];
  return { code, stdout: Buffer.concat(said).toString() };
}

test(`two programs over one wallet, killed at any moment: no call is paid twice, and each has its answer in the end (seed ${seed})`, async () => {
  let kills = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const folder = newFolder();
    const budget = PRICE * BigInt(CALLS);
    await walletHere(['budget', '--day', '0.006'], folder);
    isCalm = false;
    const targets = Array.from({ length: CALLS }, (_, at) => `/round-${round}-call-${at}`);
    const worker = async () => {
      for (let at = 0; at < CALLS; at++) {
        const target = targets[Math.floor(random() * CALLS)] ?? '';
        const { code } = await pay(folder, target, 150 + random() * 1500);
        if (code === null) kills += 1;
      }
    };
    await Promise.all([worker(), worker()]);
    isCalm = true;
    for (const target of targets) {
      const { code, stdout } = await pay(folder, target, null);
      const nonces = presented.get(target)?.size ?? 0;
      // A call that was answered before is a new one here, and may find its budget spent.
      expect([0, 3], `${target} of seed ${seed}`).toContain(code);
      if (code === 0) expect(stdout).toBe(`${target}\n`);
      expect(nonces).toBeGreaterThanOrEqual(code === 0 ? 1 : 0);
    }
    const nonces = targets.flatMap((target) => [...(presented.get(target) ?? [])]);
    expect(BigInt(nonces.length) * PRICE, `spent in round ${round} of seed ${seed}`).toBeLessThanOrEqual(budget);
    const waiting = JSON.parse((await walletHere(['open', '--json'], folder)).stdout);
    expect(waiting).toEqual([]);
    const history: { call: string; reference: string; state: string }[] = JSON.parse(
      (await walletHere(['history', '--json'], folder)).stdout,
    );
    // Whatever the seller has taken stands in the history as answered, once.
    const taken = nonces.filter((nonce) => charged.has(nonce));
    expect(history.filter(({ state }) => state === 'answered').map(({ reference }) => reference)).toEqual(
      expect.arrayContaining(taken),
    );
  }
  expect(kills).toBeGreaterThan(ROUNDS / 2);
});

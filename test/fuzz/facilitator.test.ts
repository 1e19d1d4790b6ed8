import { once } from 'node:events';
import { connect } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildFacilitatorApp, facilitatorConfig } from '../../scripts/lib/lightning/facilitator-app.ts';
import { lightningProof } from '../../scripts/lib/lightning/lightning-proofs.ts';
import { createLogger } from '../../src/lib/common.ts';
import { captureLog, listen } from '../http/harness.ts';
import { type OpenFacilitator, openFacilitator } from '../support/lightning/facilitator.ts';
import { formsOf } from '../support/lightning/settle-calls.ts';
import { seed, seededRandom } from '../support/random.ts';

const RUNS = process.env.SLOW ? 50_000 : 600;
const RAW_RUNS = process.env.SLOW ? 3000 : 150;
/** In ms. Without an answer by then the call hangs; the slowest honest answer takes milliseconds. */
const HANG_MS = 10_000;
const NOW = 1_700_000_000;
const PATHS = ['/facilitator/settle', '/facilitator/verify', '/facilitator', '/facilitator/supported'];

let opened: OpenFacilitator;
let app: FastifyInstance;
let port: number;
let lines: Record<string, unknown>[];
beforeAll(async () => {
  opened = openFacilitator({ startMs: NOW * 1000, limits: { perMinute: 0, dailyCap: 1_000_000 } });
  const log = captureLog();
  lines = log.lines;
  app = buildFacilitatorApp(opened.facilitator, facilitatorConfig({}), createLogger('debug', log.destination));
  port = await listen(app);
});
afterAll(async () => {
  await app.close();
  opened.close();
});

const random = seededRandom('facilitator');
const below = (limit: number) => Math.floor(random() * limit);
const pick = <T>(from: readonly T[]): T => from[below(from.length)] as T;
const bytes = (length: number) => Buffer.from(Array.from({ length }, () => below(256)));

const nested = (open: string, close: string, depth: number) => open.repeat(depth) + close.repeat(depth);
/** JSON texts that are hard for programs. Some cannot be written from a JavaScript object. */
const AWKWARD: readonly (() => string)[] = [
  () =>
    pick([
      'null',
      'true',
      'false',
      '0',
      '-0',
      '-1',
      '2',
      '2.0',
      '1e999',
      '-1e-999',
      '9007199254740993',
      '[]',
      '{}',
      '""',
    ]),
  () =>
    pick([
      '"__proto__"',
      '"constructor"',
      '"toString"',
      '"exact"',
      '"\\ud800"',
      '"\\u0000"',
      '"lnbc1"',
      '"\\ud83d\\ude00"',
    ]),
  () =>
    pick([
      '{"__proto__":{"x":1}}',
      '{"constructor":{"prototype":{}}}',
      '{"toJSON":1}',
      '{"valueOf":null,"toString":null}',
    ]),
  () => pick(['{"length":1e9}', '{"then":{}}', '{"a":1,"a":2}', '[[],{},null]', '{"":{"":{"":0}}}']),
  () => JSON.stringify('x'.repeat(below(40_000))),
  () => JSON.stringify('f'.repeat(below(200))),
  () => String(below(2 ** 31)).repeat(1 + below(50)),
  () => nested('[', ']', below(25_000)),
  () => `${'{"a":'.repeat(8000)}0${'}'.repeat(8000)}`,
  () => JSON.stringify(bytes(below(300)).toString('latin1')),
];

/** The same JSON with one of its values replaced. */
function withOneValueReplaced(json: string): string {
  const places = [...json.matchAll(/(?<=[:[,])(?:"(?:[^"\\]|\\.)*"|\d+|\[\]|null|true|false)(?=[,}\]])/g)];
  const place = pick(places);
  return json.slice(0, place.index) + pick(AWKWARD)() + json.slice(place.index + place[0].length);
}

/** The same JSON with one of its objects replaced, or with one member more. */
function withOneObjectChanged(json: string): string {
  const starts = [...json.matchAll(/\{/g)].map(({ index }) => index);
  const at = pick(starts);
  const name = pick(['__proto__', 'constructor', 'preimage', 'network', 'extra', 'x', '']);
  return `${json.slice(0, at + 1)}${JSON.stringify(name)}:${pick(AWKWARD)()},${json.slice(at + 1)}`;
}

/** The same bytes with some of them changed, removed, doubled or inserted. */
function withDamage(json: string): Buffer {
  let damaged = Buffer.from(json);
  for (let n = 0; n <= below(4); n++) {
    const at = below(damaged.length);
    const parts = [damaged.subarray(0, at), damaged.subarray(at)] as const;
    damaged = pick([
      () => Buffer.concat([parts[0], bytes(1 + below(8)), parts[1]]),
      () => Buffer.concat([parts[0], parts[1].subarray(1 + below(20))]),
      () => Buffer.concat([damaged, parts[1]]),
      () => Buffer.from(parts[0]),
    ])();
  }
  return damaged;
}

const bodyOf = (json: string): string | Buffer =>
  pick([
    () => withOneValueReplaced(json),
    () => withOneObjectChanged(json),
    () => withOneValueReplaced(withOneObjectChanged(json)),
    () => withDamage(json),
    () => bytes(below(2000)),
    () => pick(AWKWARD)(),
    () => json.padEnd(65_530 + below(12), ' '),
    () => json,
  ])();

const TYPES = [
  'application/json',
  'text/plain',
  'multipart/form-data; boundary=x',
  'application/json; charset=utf-16',
  '*/*',
  ';',
  'a/b;c',
  '',
];

describe(`settle, with random input (seed ${seed})`, () => {
  it(`answers each of ${RUNS} bodies in x402's shape, never 5xx, and claims nothing that was not presented`, {
    timeout: 600_000,
  }, async () => {
    const statuses = new Map<number, number>();
    for (let run = 0; run < RUNS; run++) {
      const context = `seed ${seed}, run ${run} (run again with SEED=${seed})`;
      const proof = lightningProof({
        createdAt: NOW - below(2),
        preimage: bytes(32),
        maxTimeoutSeconds: pick([300, 3600, 3601]),
      });
      const payload = bodyOf(JSON.stringify(proof.body));
      const headers = { 'content-type': pick(TYPES), 'x-forwarded-for': bytes(8).toString('hex') };
      const answer = await app.inject({ method: 'POST', url: '/facilitator/settle', payload, headers });
      statuses.set(answer.statusCode, (statuses.get(answer.statusCode) ?? 0) + 1);
      expect([200, 400, 413], `${context}: ${answer.body.slice(0, 200)}`).toContain(answer.statusCode);
      const body = answer.json();
      expect(body, context).toEqual(
        body.success
          ? { success: true, transaction: proof.paymentHash, network: expect.any(String) }
          : {
              success: false,
              errorReason: expect.any(String),
              message: expect.stringMatching(/\.$/),
              transaction: '',
              network: expect.any(String),
            },
      );
      expect(answer.body.includes(proof.preimage), context).toBe(false);
    }
    // Every kind of answer occurred.
    expect([...statuses.keys()].sort()).toEqual([200, 400, 413]);
  });

  it('handles deep nesting everywhere', async () => {
    const { body } = lightningProof({ createdAt: NOW });
    const deep = [nested('[', ']', 32_000), `${'{"a":'.repeat(10_000)}0${'}'.repeat(10_000)}`];
    for (const value of deep) {
      for (const [from, to] of [
        ['"extra":{', `"extra":{"x":${value},`],
        ['"requestBindingParams":{', `"requestBindingParams":{"x":${value},`],
        ['"payload":{', `"payload":{"x":${value},`],
      ] as const) {
        const payload = JSON.stringify(body).replace(from, to);
        const both = JSON.stringify(body).replaceAll(from, to.replace(value, nested('[', ']', 15_000)));
        for (const text of [payload, both]) {
          const answer = await app.inject({ method: 'POST', url: '/facilitator/settle', payload: text });
          expect([from, [200, 413].includes(answer.statusCode)]).toEqual([from, true]);
        }
      }
    }
  });
});

/** Sends bytes, ends, and returns what came back until the server closed; rejects when it does not. */
async function exchange(sent: Uint8Array): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  await once(socket, 'connect');
  let received = '';
  socket.on('data', (chunk) => {
    received += chunk.toString('latin1');
  });
  socket.on('error', () => undefined);
  const hang = setTimeout(() => socket.destroy(new Error('hang')), HANG_MS);
  const closed = new Promise<void>((resolve) => {
    socket.on('close', () => resolve());
  });
  socket.end(sent);
  await closed;
  clearTimeout(hang);
  if (socket.errored?.message === 'hang') throw new Error(`no end after ${HANG_MS} ms`);
  return received;
}

describe(`the connection, with random input (seed ${seed})`, () => {
  const HEADERS = [
    'Content-Length: 5',
    'Content-Length: -1',
    'Content-Length: 99999999999999999999',
    'Content-Length: 65537',
    'Transfer-Encoding: chunked',
    'Transfer-Encoding: gzip, chunked',
    'Content-Encoding: gzip',
    'Content-Type: application/json',
    'Content-Type: \u00ff/;=',
    'Expect: 100-continue',
    'Expect: cake',
    'Connection: upgrade',
    'Upgrade: websocket',
    'X-Forwarded-For: ::::, 1.2.3.4',
    'Forwarded: for="[::1"',
    'Host: other.example',
    'Content-Length: 3\r\nContent-Length: 4',
    ' folded: x',
  ];

  it(`ends each of ${RAW_RUNS} connections, and never with a 5xx`, {
    timeout: 600_000,
  }, async () => {
    let answered = 0;
    for (let run = 0; run < RAW_RUNS; run++) {
      const head = [
        `${pick(['POST', 'POST', 'GET', 'HEAD', 'QUERY', 'BREW', 'OPTIONS'])} ${pick(PATHS)} HTTP/1.${below(2)}`,
      ];
      if (below(10) > 0) head.push('Host: localhost');
      for (let n = 0; n < below(5); n++) head.push(pick(HEADERS));
      if (below(5) === 0) head.push(`${bytes(3).toString('hex')}: ${bytes(below(30)).toString('latin1')}`);
      const body = bodyOf(JSON.stringify(lightningProof({ createdAt: NOW, preimage: bytes(32) }).body));
      const sent =
        below(20) === 0
          ? bytes(below(500))
          : Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`, 'latin1'), Buffer.from(body)]);
      const received = await exchange(sent);
      const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(received)?.[1] ?? 0);
      if (status !== 0) answered += 1;
      expect(status, `seed ${seed}, run ${run} (run again with SEED=${seed}): ${received.slice(0, 300)}`).toBeLessThan(
        500,
      );
    }
    expect(answered).toBeGreaterThan(RAW_RUNS / 4);
  });

  it('and nothing of the input is in the log', async () => {
    const proof = lightningProof({ createdAt: NOW });
    await app.inject({ method: 'POST', url: '/facilitator/settle', payload: JSON.stringify(proof.body).slice(1) });
    expect(lines.some(({ route }) => route === '/facilitator/settle')).toBe(true);
    expect(lines.filter(({ status }) => Number(status) >= 500)).toEqual([]);
    expect(opened.lines).toEqual([]);
    const text = JSON.stringify(lines);
    expect(formsOf(proof.preimage).filter((form) => text.includes(String(form)))).toEqual([]);
  });
});

import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { encodePaymentRequiredHeader, encodePaymentResponseHeader } from '@x402/core/http';
import type { PaymentRequired } from '@x402/core/types';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { createAccount } from '../../../dev/network.ts';
import { WOULD_BE_REFUSED } from '../../../src/payment/protocol.ts';
import { runCommand } from '../../support/service/operator-command.ts';
import { payHere } from '../../support/service/pay-here.ts';

const payer = createAccount();
const payTo = createAccount().address;
const transaction = `0x${'ab'.repeat(32)}`;

/** A seller with the answers that the test sets. `paid` has the headers of requests with a payment. */
const seller = {
  amount: '2000',
  listed: '0.002' as string | null,
  settled: 200,
  /** How many more answers a broken connection cuts off. */
  cutOffsLeft: 0,
  /** The seller refuses the payment once it has cut off these. */
  thenRefuses: false,
  /** Its answer to each payment. Null: as above. Status 0 breaks the connection. */
  answer: null as { status: number; receipt: object | null } | null,
  maxTimeoutSeconds: 60,
  /** The body of its 402. */
  body: { hint: 'pay' } as object,
  /** The resource that it names. Null: the requested URL. */
  resource: null as string | null,
  paid: [] as IncomingHttpHeaders[],
};
let server: Server;
let origin: string;
/** Of each test: the wallet's record is in it. */
let folder: string;

function challenge(target: string): string {
  const extra = { name: 'USDC', version: '2' };
  const asset = '0x3600000000000000000000000000000000000000';
  const requirement = { scheme: 'exact', network: 'eip155:5042', asset, amount: seller.amount, payTo, extra };
  return encodePaymentRequiredHeader({
    x402Version: 2,
    error: 'invalid_exact_evm_insufficient_balance',
    resource: { url: seller.resource ?? `${origin}${target}` },
    accepts: [{ ...requirement, maxTimeoutSeconds: seller.maxTimeoutSeconds }],
  } as unknown as PaymentRequired);
}

beforeAll(async () => {
  server = createServer((request, response) => {
    if (request.url === '/openapi.json') {
      const operation = { get: { 'x-payment-info': { price: { amount: seller.listed } } } };
      response.writeHead(seller.listed === null ? 404 : 200).end(JSON.stringify({ paths: { '/thing': operation } }));
    } else if (request.url?.startsWith('/free')) {
      response.end(request.url === '/free' ? '{"free":true}' : '{"free":true}\n');
    } else if (request.url === '/moved') {
      response.writeHead(302, { location: '/thing' }).end();
    } else if (request.url === '/gone') {
      const problem = { status: 404, code: 'not_found', detail: 'There is no package of this name.', charged: false };
      response.writeHead(404, { 'content-type': 'application/problem+json' }).end(JSON.stringify(problem));
    } else if (request.headers['payment-signature'] && seller.answer) {
      const { status, receipt } = seller.answer;
      if (status === 0) return void response.destroy();
      const headers = receipt === null ? {} : { 'payment-response': btoa(JSON.stringify(receipt)) };
      response.writeHead(status, headers).end('{"answer":42}');
    } else if (request.headers['payment-signature'] && seller.settled === 200 && !isRefused()) {
      seller.paid.push(request.headers);
      const receipt = { success: true, transaction, network: 'eip155:5042' } as const;
      const headers = { 'payment-response': encodePaymentResponseHeader(receipt) };
      if (seller.cutOffsLeft-- > 0) response.writeHead(200, headers).write('{"answer":', () => response.destroy());
      else response.writeHead(200, headers).end('{"answer":42}');
    } else {
      if (request.headers['payment-signature']) seller.paid.push(request.headers);
      response.writeHead(402, { 'payment-required': challenge(request.url ?? '') }).end(JSON.stringify(seller.body));
    }
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterAll(() => server.close());

const isRefused = (): boolean => seller.thenRefuses && seller.cutOffsLeft <= 0;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'percall-pay-'));
  Object.assign(seller, {
    amount: '2000',
    listed: '0.002',
    settled: 200,
    cutOffsLeft: 0,
    thenRefuses: false,
    answer: null,
    maxTimeoutSeconds: 60,
    body: { hint: 'pay' },
    resource: null,
    paid: [],
  });
});

afterEach(() => rmSync(folder, { recursive: true }));

function pay(
  path: string,
  flags: string[] = [],
  env: Record<string, string> = { BUYER_PRIVATE_KEY: payer.privateKey },
) {
  return payHere([`${origin}${path}`, ...flags], { env, folder });
}

test('pays what is asked and prints only the body on standard output', async () => {
  const { code, stdout, stderr } = await pay('/thing');
  expect({ code, stdout }, stderr).toEqual({ code: 0, stdout: '{"answer":42}' });
  expect(stderr).toContain(transaction);
  const sent = JSON.parse(Buffer.from(String(seller.paid[0]?.['payment-signature']), 'base64').toString());
  const { nonce, validBefore } = sent.payload.authorization;
  expect(stderr).toContain(`signed:  nonce ${nonce}, until ${validBefore} (Unix seconds)`);
  expect(sent.payload.authorization).toMatchObject({ from: payer.address, to: payTo, value: '2000' });
});

test('presents the same payment again for an answer that was cut off', async () => {
  seller.cutOffsLeft = 1;
  const { code, stdout, stderr } = await pay('/thing');
  expect({ code, stdout }, stderr).toEqual({ code: 0, stdout: '{"answer":42}' });
  expect(stderr).toContain('the answer was cut off; the same payment again');
  const [first, again] = seller.paid.map((headers) => headers['payment-signature']);
  expect([again, seller.paid.length]).toEqual([first, 2]);
});

test('says that a payment is paid when each answer is cut off, and leaves the seller attempts for later', async () => {
  seller.cutOffsLeft = 100;
  const { code, stdout, stderr } = await pay('/thing');
  expect({ code, stdout }, stderr).toEqual({ code: 4, stdout: '' });
  expect(stderr).toContain(
    `the answer was cut off; by its receipt it is paid, transaction ${transaction}; its nonce is 0x`,
  );
  expect(seller.paid).toHaveLength(3);
});

test('says that a payment is paid when it is refused after an answer that was cut off', async () => {
  Object.assign(seller, { cutOffsLeft: 1, thenRefuses: true });
  const { code, stderr } = await pay('/thing');
  expect(code, stderr).toBe(4);
  expect(stderr).toMatch(/status 402: .*; an earlier answer was cut off; by its receipt it is paid, transaction 0xab/);
  expect(seller.paid).toHaveLength(2);
});

test.each([
  [
    'gone, by a receipt that says paid',
    410,
    { success: true, transaction },
    'by its receipt it is paid, transaction 0xab',
  ],
  ['refused, without a receipt', 500, null, 'the authorization can be charged until'],
  [
    'an answer without a receipt',
    200,
    null,
    'the answer came without a receipt; the authorization can be charged until',
  ],
  [
    'an answer whose receipt says refused',
    200,
    { success: false, transaction },
    'came without a receipt; the authoriz',
  ],
  ['an answer whose receipt names nothing', 200, { success: true, transaction: '' }, 'without a receipt; the authoriz'],
  [
    'an answer whose receipt names an object',
    200,
    { success: true, transaction: { toString: 1 } },
    'without a receipt',
  ],
  [
    'refused with an object as its reason',
    503,
    { success: false, errorReason: { toString: 1 } },
    'can be charged until',
  ],
])('what is known of the payment is told when it is %s', async (_case, status, receipt, told) => {
  seller.answer = { status, receipt };
  const { code, stdout, stderr } = await pay('/thing');
  expect({ code, stdout }, stderr).toEqual(
    status === 200 ? { code: 0, stdout: '{"answer":42}' } : { code: 4, stdout: '' },
  );
  expect(stderr).toContain(told);
});

test('says when the authorization ends, and its nonce, when no answer comes at all', async () => {
  seller.answer = { status: 0, receipt: null };
  const { code, stderr } = await pay('/thing');
  expect(code).toBe(4);
  expect(stderr).toMatch(
    /unanswered: no answer; the authorization can be charged until \d+ \(Unix seconds\), its nonce is 0x/,
  );
});

test.each([
  ['ten minutes where the seller allows a week', 604_900, 600],
  ['a minute where the seller allows no more', 60, 60],
])('an authorization is signed for %s, and the offer goes back unchanged', async (_case, allowed, signed) => {
  seller.maxTimeoutSeconds = allowed;
  const beganSeconds = Math.floor(Date.now() / 1000);
  expect((await pay('/thing')).code).toBe(0);
  const endedSeconds = Math.ceil(Date.now() / 1000);
  const sent = JSON.parse(Buffer.from(String(seller.paid[0]?.['payment-signature']), 'base64').toString());
  expect(sent.accepted.maxTimeoutSeconds).toBe(allowed);
  expect(Number(sent.payload.authorization.validBefore)).toBeGreaterThanOrEqual(beganSeconds + signed);
  expect(Number(sent.payload.authorization.validBefore)).toBeLessThanOrEqual(endedSeconds + signed);
});

test.each([
  ['a payment', []],
  ['a payment over a channel', ['--channel']],
  ['a dry run', ['--dry-run']],
])('signs nothing for %s where the 402 says that the paid request would be a 400', async (_what, flags) => {
  seller.body = {
    hint: `name is missing. ${WOULD_BE_REFUSED}, uncharged: mend it before you sign. It costs 0.002 USDC on Arc.`,
  };
  const { code, stdout, stderr } = await pay('/thing', flags);
  expect({ code, stdout, paid: seller.paid }).toEqual({ code: 3, stdout: '', paid: [] });
  expect(stderr).toMatch(/^refused: name is missing\. With a payment .*400.* on Arc; nothing was signed$/m);
});

test('the program ends an answer that has no newline with one, and adds none to another', async () => {
  for (const path of ['/free', '/free-line']) {
    const { code, stdout, stderr } = await runCommand('pay', [origin + path], { cwd: tmpdir(), env: {} });
    expect({ code, stdout }, stderr).toEqual({ code: 0, stdout: '{"free":true}\n' });
  }
});

test.each([
  ['the ceiling', { amount: '10001', listed: '1' }, [], 'above the ceiling of 0.01 USDC'],
  ['a given ceiling', {}, ['--max-usdc', '0.001999'], 'above the ceiling of 0.001999 USDC'],
  ['the listed price', { amount: '2001' }, [], "above the seller's own listed price of 0.002 USDC"],
])('refuses above %s, and signs nothing', async (_case, changes, flags, reason) => {
  Object.assign(seller, changes);
  const { code, stdout, stderr } = await pay('/thing', flags);
  expect({ code, stdout, paid: seller.paid }).toEqual({ code: 3, stdout: '', paid: [] });
  expect(stderr).toContain(reason);
});

test.each([
  ['another path', () => `${origin}/other?a=1`],
  ['another query', () => `${origin}/thing?a=2`],
  ['another seller', () => 'http://other.test/thing?a=1'],
])('refuses an offer for %s than the requested one, and signs nothing', async (_what, resource) => {
  seller.resource = resource();
  const { code, stdout, stderr } = await pay('/thing?a=1');
  expect({ code, stdout, paid: seller.paid }).toEqual({ code: 3, stdout: '', paid: [] });
  expect(stderr).toContain(`the offer is for ${resource()}`);
  const dry = await pay('/thing?a=1', ['--dry-run'], {});
  expect([dry.code, dry.stderr]).toEqual([3, expect.stringContaining('the offer is for')]);
});

test('pays when the seller leaves the query out of its resource, as ours does with a very long one', async () => {
  seller.resource = `${origin}/thing`;
  const { code, stdout, stderr } = await pay('/thing?a=1');
  expect({ code, stdout }, stderr).toEqual({ code: 0, stdout: '{"answer":42}' });
});

test('says so when the listing cannot be read, and applies the ceiling alone', async () => {
  Object.assign(seller, { amount: '9999', listed: null });
  const { code, stderr } = await pay('/thing');
  expect(code, stderr).toBe(0);
  expect(stderr).toContain('no price could be read from the listing');
});

test('a dry run needs no key and sends no payment', async () => {
  const { code, stdout, stderr } = await pay('/thing', ['--dry-run'], {});
  expect({ code, stdout, paid: seller.paid }).toEqual({ code: 0, stdout: '', paid: [] });
  expect(stderr).toContain('0.002 USDC');
});

test('a refused payment is reported with the status and the header’s error', async () => {
  seller.settled = 402;
  const { code, stdout, stderr } = await pay('/thing');
  expect({ code, stdout, shown: seller.paid.length }).toEqual({ code: 5, stdout: '', shown: 1 });
  // Whatever the seller says, it holds the authorization.
  expect(stderr).toMatch(
    /status 402: invalid_exact_evm_insufficient_balance; the authorization can be charged until \d+ \(Unix seconds\), its nonce is 0x/,
  );
});

test('asks for a payment channel, and signs nothing when the seller offers none', async () => {
  for (const flags of [['--channel'], ['--channel', '--refund'], ['--channel', '--dry-run']]) {
    const { code, stdout, stderr } = await pay('/thing', flags);
    const refused = flags.includes('--refund') ? 1 : 3;
    expect({ code, stdout, paid: seller.paid }).toEqual({ code: refused, stdout: '', paid: [] });
    expect(stderr).toContain('nothing on offer is paid over a payment channel (batch-settlement); nothing was signed');
  }
});

test('a redirect of the unpaid request is not followed', async () => {
  const { code, stderr } = await pay('/moved');
  expect({ code, paid: seller.paid }).toEqual({ code: 1, paid: [] });
  expect(stderr).toContain('moved to /thing');
});

test('an answer that is no 402 is told in the seller’s own words', async () => {
  const { code, stdout, stderr } = await pay('/gone');
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr).toContain('failed: status 404: There is no package of this name. (the seller says: not charged)');
});

test('wrong usage ends with 2, and the reason is the last line', async () => {
  const runs = await Promise.all([
    pay('/thing', ['--nope']),
    pay('/thing', ['--max-usdc', '1e3']),
    pay('/thing', [], {}),
  ]);
  expect(runs.map(({ code }) => code)).toEqual([2, 2, 2]);
  const last = runs.map(({ stderr }) => stderr.trimEnd().split('\n').at(-1));
  expect(last[1]).toMatch(/^usage: --max-usdc/);
  expect(last[2]).toMatch(/^usage: BUYER_PRIVATE_KEY must hold/);
});

test.each([
  [['--refund'], '--refund needs --channel'],
  [['--max-deposit', '1'], '--max-deposit needs --channel'],
  [['--channel', '--max-deposit', '-1'], ''],
  [['--channel', '--max-deposit', '1e3'], '--max-deposit is a decimal number'],
  [['--channel', '--rail', 'lightning'], '--channel pays in USDC'],
  [['--channel', '--refund', '--dry-run'], '--refund pays nothing'],
])('wrong usage of a payment channel ends with 2: %s', async (flags, reason) => {
  const { code, stderr } = await pay('/thing', flags);
  expect({ code, paid: seller.paid }, stderr).toEqual({ code: 2, paid: [] });
  expect(stderr).toContain(reason);
});

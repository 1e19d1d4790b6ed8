import { describe, expect, it } from 'vitest';
import { createLogger } from '../../../src/lib/common.ts';
import { captureLog } from '../../http/harness.ts';

const SECRET = 'do-not-print-me';

function logged(write: (log: ReturnType<typeof createLogger>) => void) {
  const { lines, destination } = captureLog();
  write(createLogger('debug', destination));
  return { lines, text: JSON.stringify(lines) };
}

describe('the log', () => {
  it.each([
    ['at the top', { privateKey: SECRET }],
    [
      'in headers, in any letter case',
      { req: { headers: { 'PAYMENT-SIGNATURE': SECRET, 'x-payment': SECRET, authorization: SECRET, Cookie: SECRET } } },
    ],
    ['deep in lists', { batch: [{ payload: { signature: SECRET, inner: [{ preimage: SECRET }] } }] }],
    [
      'in a configuration',
      { config: { relayerPrivateKey: SECRET, metricsToken: SECRET, network: { rpcUrls: [SECRET] } } },
    ],
    ['on an error', { err: Object.assign(new Error('failed'), { request: { signature: SECRET } }) }],
  ])('holds no secret %s', (_where, record) => {
    const { text, lines } = logged((log) => log.info(record, 'message'));
    expect(lines).toHaveLength(1);
    expect(text).not.toContain(SECRET);
    expect(text).toContain('[redacted]');
  });

  it('leaves out fields of the cause of an error', () => {
    const cause = Object.assign(new Error('the cause'), { privateKey: SECRET });
    const { text } = logged((log) => log.info({ problem: new Error('failed', { cause }) }, 'message'));
    expect(text).not.toContain(SECRET);
    expect(text).toContain('the cause');
  });

  it('holds no secret in the bindings of a child logger either', () => {
    expect(logged((log) => log.child({ signature: SECRET }).info('message')).text).not.toContain(SECRET);
  });

  it('keeps everything else, and the stack of an error', () => {
    const { lines } = logged((log) =>
      log.warn({ err: new TypeError('bad'), 'payment-response': 'kept', at: 1, list: [1, null], big: 5n }, 'message'),
    );
    expect(lines[0]).toMatchObject({
      level: 'warn',
      msg: 'message',
      'payment-response': 'kept',
      at: 1,
      list: [1, null],
    });
    expect(lines[0]?.err).toMatchObject({
      type: 'TypeError',
      message: 'bad',
      stack: expect.stringContaining('log.test.ts'),
    });
  });

  it('ends on an object that refers to itself', () => {
    const loop: Record<string, unknown> = { signature: SECRET };
    loop.self = loop;
    expect(logged((log) => log.info(loop, 'message')).text).not.toContain(SECRET);
  });

  it('is silent below its level', () => {
    const { lines, destination } = captureLog();
    createLogger('error', destination).info('message');
    expect(lines).toEqual([]);
  });
});

it('says once what an error and its cause both say', () => {
  const { lines, destination } = captureLog();
  const reason = 'its host name does not resolve';
  const cause = new Error(reason, { cause: new Error('getaddrinfo ENOTFOUND x.example') });
  const log = createLogger('info', destination);
  log.warn({ err: new Error(`shop: ${reason}`, { cause }) }, 'a repeated reason');
  log.warn({ err: new Error('the call failed', { cause }) }, 'another one');
  const said = lines.map(({ err }) => (err as Error).message);
  expect(said).toEqual([
    `shop: ${reason}: getaddrinfo ENOTFOUND x.example`,
    `the call failed: ${reason}: getaddrinfo ENOTFOUND x.example`,
  ]);
});

import { afterAll, beforeAll, expect, test } from 'vitest';
import { createResolve } from '../../../../src/upstream/guard/guard.ts';
import { type NameServer, startNameServer } from '../../../support/upstream/name-server.ts';

const signal = new AbortController().signal;
let names: NameServer;
beforeAll(async () => {
  const zone: Record<string, readonly string[]> = {
    'both.example': ['2606:4700::1', '1.1.1.1'],
    'four.example': ['1.1.1.1', '1.0.0.1'],
    'six.example': ['2606:4700::1111'],
  };
  names = await startNameServer((name) => zone[name] ?? []);
});
afterAll(() => names.stop());

test.each([
  ['both.example', ['1.1.1.1', '2606:4700::1']],
  ['four.example', ['1.1.1.1', '1.0.0.1']],
  ['six.example', ['2606:4700::1111']],
])('%s has all its addresses, IPv4 first', async (name, addresses) => {
  expect(await createResolve([names.address])(name, signal)).toEqual(addresses);
});

test('a name that does not exist is 404, not a failure', async () => {
  const found = createResolve([names.address])('gone.example', signal);
  await expect(found).rejects.toMatchObject({ status: 404, code: 'host_not_found' });
});

test.each(['NXDOMAIN', 'NOERROR'] as const)(
  'a name server that knows no name at all, not even the root (%s), does not say that a name does not exist',
  async (root) => {
    const offline = await startNameServer(() => [], { root });
    const found = createResolve([offline.address])('example.com', signal);
    await expect(found).rejects.toMatchObject({
      at: 'connecting',
      message: 'its name cannot be resolved now',
      mayBeOurs: true,
    });
    await offline.stop();
  },
);

test.each(['REFUSED', 'SERVFAIL', 'NOTIMP', null] as const)(
  'a name server that does not answer for the root (%s) is believed that a name does not exist',
  async (root) => {
    const filtering = await startNameServer(() => [], { root });
    // The client's time-out for connecting: the answer comes before.
    const found = createResolve([filtering.address])('gone.example', AbortSignal.timeout(3000));
    await expect(found).rejects.toMatchObject({ status: 404, code: 'host_not_found' });
    await filtering.stop();
  },
);

test('name servers that refuse to answer may be ours as well as the name’s', async () => {
  const refusing = createResolve(['127.0.0.1:9']);
  await expect(refusing('any.example', signal)).rejects.toMatchObject({
    at: 'connecting',
    message: 'its name cannot be resolved now',
    mayBeOurs: true,
  });
});

test('every resolution asks the name servers again, and no earlier result is reused', async () => {
  const resolve = createResolve([names.address]);
  const before = names.asked.length;
  await resolve('four.example', signal);
  await resolve('four.example', signal);
  expect(names.asked.length - before).toBe(4);
});

test('a caller that aborts does not wait for silent name servers', async () => {
  const silent = createResolve(['127.0.0.1:9']);
  await expect(silent('any.example', AbortSignal.timeout(50))).rejects.toThrow();
});

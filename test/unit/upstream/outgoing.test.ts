import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { systemClock } from '../../../src/lib/clock.ts';
import { createOutgoing } from '../../../src/wiring/sources.ts';
import { quiet } from '../../support/quiet.ts';
import { startReplay } from '../../support/upstream/replay.ts';

const { version } = JSON.parse(readFileSync(join(import.meta.dirname, '../../../package.json'), 'utf8'));
const signal = new AbortController().signal;

test.each([
  [null, `percall/${version} (+https://us.example)`],
  ['mailto:ops@us.example', `percall/${version} (+mailto:ops@us.example)`],
])('every request names the service, its version and a contact: %s', async (contactUrl, userAgent) => {
  const replay = await startReplay({ '*': { headers: { 'content-type': 'text/plain' }, body: 'x' } });
  const testHosts = new Map([['good.example', { address: '127.0.0.1', port: replay.port }]]);
  const web = { contactUrl, timeoutMs: 30_000, hostPerMinute: 0, pageWorkers: 1, testHosts };
  const outgoing = createOutgoing({ clock: systemClock, log: quiet }, web, 'https://us.example');
  const options = { name: 'up', timeoutMs: 30_000, maxBytes: 1000, concurrency: 1, retries: 0 } as const;
  await outgoing.upstreams.open(options).fetch({ url: replay.url });
  await outgoing.web.check('http://good.example/', signal);
  expect(replay.received.map(({ headers }) => headers['user-agent'])).toEqual([userAgent, userAgent]);
  // Our own host is refused, because the service would otherwise call itself.
  await expect(outgoing.web.check('https://us.example/v1', signal)).rejects.toMatchObject({ code: 'url_not_public' });
  await outgoing.close();
  await replay.stop();
});

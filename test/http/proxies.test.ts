import { afterEach, describe, expect, it } from 'vitest';
import { createTestApp } from './harness.ts';

type Test = Awaited<ReturnType<typeof createTestApp>>;
let t: Test;
afterEach(() => t.app.close());

const ask = (headers: Record<string, string>, { url = '/livez', remoteAddress = '10.0.0.1' } = {}) =>
  t.app.inject({ url, remoteAddress, headers });
const warnings = () => t.lines.filter(({ msg }) => String(msg).includes('TRUSTED_PROXIES'));

describe('a proxy that TRUSTED_PROXIES does not name', () => {
  it.each(['x-forwarded-for', 'forwarded'])(
    'causes one warning with its address, on whichever route it comes first (%s)',
    async (name) => {
      t = await createTestApp();
      await ask({});
      expect(warnings()).toEqual([]);
      await ask({ [name]: 'for=192.0.2.1' });
      await ask({ [name]: 'for=192.0.2.2' }, { url: '/v1/paid/chain/thing', remoteAddress: '10.0.0.2' });
      expect(warnings()).toEqual([expect.objectContaining({ level: 'warn', peer: '10.0.0.1' })]);
      expect(JSON.stringify(warnings())).not.toContain('192.0.2');
    },
  );

  it('causes a warning when another proxy is trusted', async () => {
    t = await createTestApp({ env: { TRUSTED_PROXIES: '10.0.0.1' } });
    await ask({ 'x-forwarded-for': '192.0.2.1' });
    expect(warnings()).toEqual([]);
    await ask({ 'x-forwarded-for': '192.0.2.1' }, { remoteAddress: '10.0.0.2' });
    expect(warnings()).toEqual([expect.objectContaining({ peer: '10.0.0.2' })]);
  });

  it('causes a warning when it is trusted but names its clients in a header that is not read', async () => {
    t = await createTestApp({ env: { TRUSTED_PROXIES: '10.0.0.0/8' } });
    await ask({ forwarded: 'for=192.0.2.1' });
    expect(warnings()).toHaveLength(1);
  });
});

describe('a proxy that TRUSTED_PROXIES names', () => {
  it('causes no warning, and neither does a request without a proxy', async () => {
    t = await createTestApp({ env: { TRUSTED_PROXIES: '10.0.0.0/8' } });
    for (const address of ['192.0.2.1', '192.0.2.2']) await ask({ 'x-forwarded-for': address });
    await ask({}, { remoteAddress: '192.0.2.3' });
    expect(warnings()).toEqual([]);
  });
});

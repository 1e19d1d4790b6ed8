import { execFileSync } from 'node:child_process';
import { afterAll, describe, expect, test } from 'vitest';
import { loadConfig } from '../../src/config.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { createUpstreams } from '../../src/upstream/client/client.ts';
import { createPackageSources } from '../../src/upstream/packages.ts';

/**
 * The registry that npm itself uses, by environment, file or default; null without npm.
 * Checks only what every registry serves. Mirrors have their own dates and deprecation texts, or none.
 */
function configuredRegistry(): string | null {
  try {
    return execFileSync('npm', ['config', 'get', 'registry'], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim();
  } catch {
    return null;
  }
}

const registry = process.env.LIVE === '1' ? configuredRegistry() : null;
const answers =
  registry !== null &&
  (await fetch(registry, { signal: AbortSignal.timeout(5000) }).then(
    () => true,
    () => false,
  ));

describe.skipIf(!answers)('a real npm registry (LIVE=1 and reachable)', () => {
  const config = loadConfig({
    NETWORK: 'arc',
    SELLER_ADDRESS: `0x${'5e'.repeat(20)}`,
    RELAYER_PRIVATE_KEY: `0x${'1'.repeat(64)}`,
    UPSTREAM_NPM_URL: registry ?? '',
  });
  const upstreams = createUpstreams({ clock: systemClock, userAgent: 'percall-live-test' });
  const { npm } = createPackageSources({ upstreams, config, clock: systemClock });
  afterAll(() => upstreams.close());

  test('a plain package', async () => {
    expect(await npm.latest('express')).toMatchObject({
      name: 'express',
      version: expect.stringMatching(/^\d+\.\d+\.\d+/),
      licence: 'MIT',
      dependencies: expect.objectContaining({ 'body-parser': expect.any(String) }),
      engines: expect.objectContaining({ node: expect.any(String) }),
    });
  });

  test('a scoped package', async () => {
    expect(await npm.latest('@babel/core')).toMatchObject({
      name: '@babel/core',
      dependencies: expect.objectContaining({ '@babel/types': expect.any(String) }),
      engines: expect.objectContaining({ node: expect.any(String) }),
    });
  });

  test('a package whose whole answer is larger than we read', async () => {
    expect(await npm.latest('typescript')).toMatchObject({ name: 'typescript', licence: 'Apache-2.0' });
  });

  test('a missing package', async () => {
    expect(await npm.latest('percall-no-such-package-here')).toBeNull();
  });
});

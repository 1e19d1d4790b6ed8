import { describe, expect, test } from 'vitest';
import { packagesNpm } from '../../src/endpoints/packages-npm.ts';
import { packagesPypi } from '../../src/endpoints/packages-pypi.ts';
import { packagesVulns } from '../../src/endpoints/packages-vulns.ts';
import { AppError } from '../../src/errors.ts';
import { SLACK_MS } from '../support/slack.ts';
import { fixture, usePackages } from '../support/upstream/packages.ts';
import { FAULTS, startReplay } from '../support/upstream/replay.ts';

const TIMEOUT_MS = 600;
const { server, serve, ask, open } = usePackages({ timeoutMs: TIMEOUT_MS });

const ROUTES = [
  { endpoint: packagesNpm, upstream: 'npm', name: '@example/modern', missing: 404 },
  { endpoint: packagesPypi, upstream: 'pypi', name: 'flask-thing', missing: 404 },
  // OSV answers 200 for an unknown package, so a 404 is a fault.
  { endpoint: packagesVulns, upstream: 'osv', name: '@example/modern', missing: 502 },
];

function serveAll(): void {
  serve('GET /@example%2fmodern', fixture('npm/modern.json'));
  serve('GET /downloads/point/last-week/@example/modern', fixture('npm/downloads-modern.json'));
  serve('GET /pypi/flask-thing/json', fixture('pypi/flask-thing.json'));
  serve('POST /v1/query', fixture('osv/page-2.json'));
}

describe.each(ROUTES)('$endpoint.path', ({ endpoint, upstream, name, missing }) => {
  test.each(FAULTS)('%s gives the documented status, in time, and names the source', async (fault) => {
    serveAll();
    await server().setFault(fault);
    const from = performance.now();
    const failure = await ask(endpoint, { name }).then(
      () => null,
      (error: unknown) => error,
    );
    expect(performance.now() - from).toBeLessThan(TIMEOUT_MS + SLACK_MS);
    expect(failure).toBeInstanceOf(AppError);
    const { status, charged, message } = failure as AppError;
    expect([status, charged]).toEqual([fault === '404' ? missing : 502, false]);
    if (status === 502) expect(message).toMatch(new RegExp(`^${upstream}: `));
    expect(message).not.toMatch(/127\.0\.0\.1|https?:/);
  });

  test('the same server without a fault answers', async () => {
    serveAll();
    await expect(ask(endpoint, { name })).resolves.toHaveProperty('source');
  });
});

test.each(FAULTS)('downloads fail by %s: null, and the package is answered', async (fault) => {
  serveAll();
  const downloads = await startReplay(server().answers);
  await downloads.setFault(fault);
  const packages = open({ npmDownloadsUrl: downloads.url });
  try {
    const from = performance.now();
    const reply = await ask(packagesNpm, { name: '@example/modern' }, packages);
    expect(performance.now() - from).toBeLessThan(TIMEOUT_MS + SLACK_MS);
    expect(reply).toMatchObject({ version: '2.1.0', weeklyDownloads: null });
  } finally {
    await downloads.stop();
  }
});

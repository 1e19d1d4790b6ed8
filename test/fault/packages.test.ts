import { describe, expect, test } from 'vitest';
import { packagesNpm } from '../../src/endpoints/packages/npm.ts';
import { packagesPypi } from '../../src/endpoints/packages/pypi.ts';
import { packagesVulns } from '../../src/endpoints/packages/vulns.ts';
import { AppError } from '../../src/errors.ts';
import { countRunningTime } from '../support/running-time.ts';
import { SLACK_MS } from '../support/slack.ts';
import { fixture, type Packages, packagesAt, startPackages } from '../support/upstream/packages.ts';
import { PATIENT_MS, timeoutFor } from '../support/upstream/patience.ts';
import { FAULTS, type Fault, portFor, startReplay } from '../support/upstream/replay.ts';

/** In milliseconds, for a source that is silent. The other sources of the same question get it too. */
const TIMEOUT_MS = 1200;
const runningMs = countRunningTime();

/** A test's own clients and servers, so that tests of one file may wait side by side. */
async function inWorld<T>(task: (world: Packages) => Promise<T>): Promise<T> {
  const world = await startPackages({ timeoutMs: PATIENT_MS });
  try {
    return await task(world);
  } finally {
    await world.stop();
  }
}

const ROUTES = [
  { endpoint: packagesNpm, upstream: 'npm', name: '@example/modern', missing: 404 },
  { endpoint: packagesPypi, upstream: 'pypi', name: 'flask-thing', missing: 404 },
];

function serveAll({ serve }: Packages): void {
  serve('GET /@example%2fmodern', fixture('npm/modern.json'));
  serve('GET /downloads/point/last-week/@example/modern', fixture('npm/downloads-modern.json'));
  serve('GET /pypi/flask-thing/json', fixture('pypi/flask-thing.json'));
  serve('POST /v1/query', fixture('osv/page-2.json'));
  serve('GET /@example%2fmodern/latest', { name: '@example/modern', version: '2.1.0' });
  serve('GET /v3/systems/npm/packages/%40example%2Fmodern', { packageKey: { name: '@example/modern' } });
}

describe.each(ROUTES)('$endpoint.path', ({ endpoint, upstream, name, missing }) => {
  test.concurrent.each(FAULTS)('%s gives the documented status, in time, and names the source', async (fault) => {
    const failure = await inWorld(async (world) => {
      serveAll(world);
      const place = await startReplay(world.server.answers, { port: await portFor(fault) });
      await place.setFault(fault);
      const from = runningMs();
      const sources = world.open(packagesAt(place.url), timeoutFor(fault, TIMEOUT_MS));
      const outcome = await world.ask(endpoint, { name }, sources).then(
        () => null,
        (error: unknown) => error,
      );
      await place.stop();
      expect(runningMs() - from).toBeLessThan(TIMEOUT_MS + SLACK_MS);
      return outcome;
    });
    expect(failure).toBeInstanceOf(AppError);
    const { status, charged, message } = failure as AppError;
    expect([status, charged]).toEqual([fault === '404' ? missing : 502, false]);
    if (status === 502) expect(message).toMatch(new RegExp(`^${upstream}: `));
    expect(message).not.toMatch(/127\.0\.0\.1|https?:/);
  });

  test('the same server without a fault answers', async () => {
    await inWorld(async (world) => {
      serveAll(world);
      await expect(world.ask(endpoint, { name })).resolves.toHaveProperty('source');
    });
  });
});

describe('/packages/vulns', () => {
  const NAME = '@example/modern';
  /** The three sources at places of their own, so that each can fail alone. */
  const ask3 = (failing: Partial<Record<'npm' | 'depsDev' | 'osv', Fault>>) =>
    inWorld((world) => askIn(world, failing));
  async function askIn(world: Packages, failing: Partial<Record<'npm' | 'depsDev' | 'osv', Fault>>) {
    serveAll(world);
    const start = async (fault: Fault | null = null) => {
      const place = await startReplay(world.server.answers, { port: await portFor(fault) });
      await place.setFault(fault);
      return place;
    };
    const places = {
      npm: await start(failing.npm),
      depsDev: await start(failing.depsDev),
      osv: await start(failing.osv),
    };
    const [fault = null] = Object.values(failing);
    const urls = { npmUrl: places.npm.url, depsDevUrl: places.depsDev.url, osvUrl: places.osv.url };
    const packages = world.open(urls, timeoutFor(fault, TIMEOUT_MS));
    const from = runningMs();
    try {
      return await world.ask(packagesVulns, { name: NAME }, packages).catch((error: unknown) => error);
    } finally {
      // One source after the other: the registry, deps.dev in its place, OSV.
      expect(runningMs() - from).toBeLessThan(3 * TIMEOUT_MS + SLACK_MS);
      for (const place of Object.values(places)) await place.stop();
    }
  }

  test.concurrent.each(FAULTS)('OSV fails by %s: 502, uncharged, and OSV is named', async (fault) => {
    const failure = await ask3({ osv: fault });
    expect(failure).toBeInstanceOf(AppError);
    // OSV answers 200 for an unknown package, so a 404 is a fault.
    expect([(failure as AppError).status, (failure as AppError).charged]).toEqual([502, false]);
    expect((failure as AppError).message).toMatch(/^osv: /);
    expect((failure as AppError).message).not.toMatch(/127\.0\.0\.1|https?:/);
  });

  test.concurrent.each(FAULTS)(
    'the registry fails by %s: deps.dev is asked, unless the registry says that there is none',
    async (fault) => {
      expect(await ask3({ npm: fault })).toMatchObject({ known: true, listed: fault !== '404' });
    },
  );

  test.concurrent.each(FAULTS)(
    'the registry and deps.dev fail by %s: 502 that names both, or what an advisory knows',
    async (fault) => {
      const outcome = await ask3({ npm: fault, depsDev: fault });
      if (fault === '404') return expect(outcome).toMatchObject({ known: true, listed: false });
      expect(outcome).toBeInstanceOf(AppError);
      expect([(outcome as AppError).status, (outcome as AppError).charged]).toEqual([502, false]);
      expect((outcome as AppError).message).toMatch(/^registry: npm: .*; deps\.dev: /);
    },
  );
});

describe('a source of optional parts fails alone, and the package is answered', () => {
  const DEPENDENTS = '{"dependentCount":7,"directDependentCount":3,"indirectDependentCount":4}';
  const PROVENANCE = '{"attestation_bundles":[{"publisher":{"kind":"GitHub","repository":"example/thing"}}]}';

  /** Answers for an endpoint, with one of the sources at a place of its own, where it fails. */
  async function askWith(
    world: Packages,
    endpoint: typeof packagesNpm | typeof packagesPypi,
    name: string,
    failing: 'npmDownloadsUrl' | 'depsDevUrl' | 'osvUrl' | 'pypiUrl',
    [fault, prefix]: readonly [Fault | null, string],
  ) {
    const { serve } = world;
    serveAll(world);
    serve('GET /v3alpha/systems/npm/packages/%40example%2Fmodern/versions/2.1.0:dependents', DEPENDENTS);
    serve('GET /v3alpha/systems/pypi/packages/flask-thing/versions/2.0.1:dependents', DEPENDENTS);
    serve('GET /integrity/flask-thing/2.0.1/flask_thing-2.0.1.tar.gz/provenance', PROVENANCE);
    const place = await startReplay(world.server.answers, { port: await portFor(fault) });
    await place.setFault(fault, prefix);
    const from = runningMs();
    try {
      return await world.ask(endpoint, { name }, world.open({ [failing]: place.url }, timeoutFor(fault, TIMEOUT_MS)));
    } finally {
      expect(runningMs() - from).toBeLessThan(2 * TIMEOUT_MS + SLACK_MS);
      await place.stop();
    }
  }

  const PARTS = [
    { endpoint: packagesNpm, source: 'npmDownloadsUrl', member: 'weeklyDownloads', field: 'weeklyDownloads' },
    { endpoint: packagesNpm, source: 'osvUrl', member: 'advisories', field: 'advisories' },
    { endpoint: packagesNpm, source: 'depsDevUrl', member: 'dependents', field: 'dependents' },
    {
      endpoint: packagesPypi,
      source: 'osvUrl',
      member: 'advisories.0.severity.label',
      field: 'advisories[].severity',
    },
    { endpoint: packagesPypi, source: 'depsDevUrl', member: 'dependents', field: 'dependents' },
    { endpoint: packagesPypi, source: 'pypiUrl', member: 'provenance', field: 'provenance' },
  ] as const;

  describe.each(PARTS)('$endpoint.path, $source', ({ endpoint, source, member, field }) => {
    const name = endpoint === packagesNpm ? '@example/modern' : 'flask-thing';
    const prefix = source === 'pypiUrl' ? '/integrity' : '/';
    const fieldsOf = ({ missing }: Record<string, unknown>) => (missing as { field: string }[]).map((one) => one.field);

    test.concurrent.each(FAULTS.filter((fault) => fault !== 'refused' || prefix === '/'))('%s', async (fault) => {
      const reply = await inWorld((world) => askWith(world, endpoint, name, source, [fault, prefix]));
      expect(reply).toHaveProperty(member, null);
      // All but OSV answer 404 for what they do not have.
      if (fault === '404' && source !== 'osvUrl') expect(fieldsOf(reply)).not.toContain(field);
      else expect(fieldsOf(reply)).toContain(field);
      expect(JSON.stringify(reply.missing)).not.toMatch(/127\.0\.0\.1|https?:/);
    });

    test('the same source without a fault gives the part', async () => {
      const reply = await inWorld((world) => askWith(world, endpoint, name, source, [null, prefix]));
      expect(fieldsOf(reply)).not.toContain(field);
      // The fixture's advisory has no severity in OSV's answer.
      if (member !== 'advisories.0.severity.label') expect(reply).not.toHaveProperty(member, null);
    });
  });
});

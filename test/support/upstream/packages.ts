import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach } from 'vitest';
import type { Endpoint } from '../../../src/catalogue/endpoint.ts';
import { parseParams } from '../../../src/catalogue/params.ts';
import type { Config } from '../../../src/config.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { createUpstreams } from '../../../src/upstream/client/client.ts';
import { createPackageSources, type PackageSources } from '../../../src/upstream/packages.ts';
import { PATIENT_MS } from './patience.ts';
import { startReplay } from './replay.ts';

/** All seven upstreams at one place. */
export function packagesAt(url: string): Config['packages'] {
  return {
    npmUrl: url,
    npmDownloadsUrl: url,
    depsDevUrl: url,
    pypiUrl: url,
    osvUrl: url,
    nugetUrl: url,
    packagistUrl: url,
  };
}

/** The same for a whole service. */
export function packagesEnvironment(url: string): Record<string, string> {
  const keys = ['NPM', 'NPM_DOWNLOADS', 'DEPS_DEV', 'PYPI', 'OSV', 'NUGET', 'PACKAGIST'];
  return Object.fromEntries(keys.map((key) => [`UPSTREAM_${key}_URL`, url]));
}

/** A hand-written answer of the documented shape. */
export function fixture(path: string): string {
  return readFileSync(new URL(`../../fixtures/packages/${path}`, import.meta.url), 'utf8');
}

/** The real clients over one replaying server, each with the time-out `timeoutMs`. */
export async function startPackages({ timeoutMs = PATIENT_MS } = {}) {
  const server = await startReplay();
  const upstreams = createUpstreams({ clock: systemClock, userAgent: 'percall-test' });
  const open = (config: Partial<Config['packages']> = {}, ms = timeoutMs) =>
    createPackageSources({
      upstreams: { open: (options) => upstreams.open({ ...options, timeoutMs: ms }) },
      config: { packages: { ...packagesAt(server.url), ...config } },
      clock: systemClock,
    });
  const sources = open();
  return {
    server,
    sources,
    /** More clients, with some upstreams at other addresses, or with another time-out in milliseconds. */
    open,
    /** By `GET /path` or `POST /path`. */
    serve: (line: string, body: string | Buffer | object, status = 200) => {
      const bytes = typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body);
      server.answers[line] = { status, body: bytes };
    },
    /** Runs an endpoint as the routes do; the reply is checked against its schema. */
    ask: async <S>(endpoint: Endpoint<S>, query: Record<string, string>, packages: PackageSources = sources) => {
      const params = parseParams(endpoint, query);
      const reply = await endpoint.run(params, { packages } as S, AbortSignal.timeout(PATIENT_MS));
      return endpoint.result.parse(reply) as Record<string, unknown>;
    },
    stop: async () => {
      await upstreams.close();
      await server.stop();
    },
  };
}

export type Packages = Awaited<ReturnType<typeof startPackages>>;

/** For the tests of a file. Each gets new clients, so that no answer comes from a cache. */
export function usePackages(options: { timeoutMs?: number } = {}) {
  let world: Packages;
  beforeEach(async () => {
    world = await startPackages(options);
  });
  afterEach(() => world.stop());
  const ask: Packages['ask'] = (endpoint, query, packages) => world.ask(endpoint, query, packages);
  return {
    server: () => world.server,
    sources: () => world.sources,
    open: (...given: Parameters<Packages['open']>) => world.open(...given),
    serve: (...given: Parameters<Packages['serve']>) => world.serve(...given),
    ask,
  };
}

const SAMPLES = join(import.meta.dirname, '../../../../shared/samples');
export const SAMPLES_PRESENT = existsSync(SAMPLES);

/** A folder of recorded answers of the real upstreams, read in place. */
export function samplesOf(folder: string) {
  const used = new Set<string>();
  return {
    sample: (file: string): Buffer => {
      used.add(file);
      return readFileSync(join(SAMPLES, folder, file));
    },
    /** The files that no test has read yet. */
    unused: (): string[] => {
      const files = globSync('*.json', { cwd: join(SAMPLES, folder) });
      if (files.length === 0) throw new Error(`no samples in ${folder}`);
      return files.filter((file) => !used.has(file));
    },
  };
}

/** Unix seconds of an ISO time. */
export function at(time: string | null): number | null {
  return time === null ? null : Math.floor(Date.parse(time) / 1000);
}

import { beforeEach, describe, expect, test } from 'vitest';
import { packagesNpm } from '../../../../src/endpoints/packages/npm.ts';
import { packagesVulns } from '../../../../src/endpoints/packages/vulns.ts';
import { fixture, usePackages } from '../../../support/upstream/packages.ts';

// What one question of packages/vulns costs upstream. Over Lightning anybody may ask it before paying.

const { server, serve, ask } = usePackages();
const question = (ecosystem: string, name: string, version?: string) =>
  ask(packagesVulns, { ecosystem, name, ...(version !== undefined && { version }) }).catch(() => null);

/** A project of 800 releases, in PyPI's form: some 600 kB. */
const BIG = JSON.stringify({
  info: { name: 'big', version: '800' },
  urls: [],
  vulnerabilities: [],
  releases: Object.fromEntries(Array.from({ length: 800 }, (_, at) => [String(at), [{ digests: 'x'.repeat(700) }]])),
});

/** What was asked since the last call: the requests, and the bytes of their answers. */
function cost() {
  const received = server().received.splice(0);
  const sizeOf = (method: string, url: string) => {
    const answer = server().answers[`${method} ${url}`];
    return method === 'HEAD' || typeof answer !== 'object' ? 0 : Buffer.byteLength(answer.body ?? '');
  };
  return {
    requests: received.map(({ method, url }) => `${method} ${url}`),
    bytes: received.reduce((sum, { method, url }) => sum + sizeOf(method, url), 0),
  };
}

beforeEach(() => serve('POST /v1/query', '{}'));

describe('a project of PyPI', () => {
  const path = '/pypi/big/json';
  const asPypi = (line: string) => {
    server().answers[line] = { body: BIG, headers: { 'x-pypi-last-serial': '1' } };
  };

  test('is looked up by its head alone, which has no body', async () => {
    asPypi(`GET ${path}`);
    expect(await question('pypi', 'Big')).toMatchObject({ known: true, listed: true });
    expect(cost()).toEqual({ requests: [`HEAD ${path}`, 'POST /v1/query'], bytes: 2 });
  });

  test('a release as well', async () => {
    asPypi('GET /pypi/big/800/json');
    expect(await question('pypi', 'big', '800')).toMatchObject({ known: true });
    expect(cost()).toEqual({ requests: ['HEAD /pypi/big/800/json', 'POST /v1/query'], bytes: 2 });
  });

  test('at a host that does not answer as PyPI does, it is looked up by its document', async () => {
    serve(`GET ${path}`, BIG);
    expect(await question('pypi', 'big')).toMatchObject({ known: true });
    expect(cost()).toEqual({
      requests: [`HEAD ${path}`, `GET ${path}`, 'POST /v1/query'],
      bytes: Buffer.byteLength(BIG) + 2,
    });
  });

  test('such a host is not believed when it answers for another project', async () => {
    serve(`GET ${path}`, BIG.replace('"name":"big"', '"name":"other"'));
    serve('GET /v3/systems/pypi/packages/big', '', 500);
    await expect(ask(packagesVulns, { ecosystem: 'pypi', name: 'big' })).rejects.toThrow(
      'answered for another package',
    );
  });
});

describe('the same question again', () => {
  test.each([
    ['pypi', 'GET /pypi/absent/json', 2],
    ['npm', 'GET /absent/latest', 2],
    ['nuget', 'GET /v3-flatcontainer/absent/index.json', 2],
    ['maven', 'GET /v3/systems/maven/packages/g%3Aabsent', 2],
  ])('costs nothing: a name that %s does not have', async (ecosystem, _line, requests) => {
    const name = ecosystem === 'maven' ? 'g:absent' : 'absent';
    expect(await question(ecosystem, name)).toBeNull();
    expect(cost().requests).toHaveLength(requests);
    expect(await question(ecosystem, name)).toBeNull();
    expect(cost().requests).toEqual([]);
  });

  test('costs nothing: a package that there is', async () => {
    serve('GET /p/latest', { name: 'p', version: '1.0.0' });
    expect(await question('npm', 'p')).not.toBeNull();
    expect(cost().requests).toEqual(['GET /p/latest', 'POST /v1/query']);
    expect(await question('npm', 'p')).not.toBeNull();
    expect(cost().requests).toEqual([]);
  });
});

test('questions that hang do not delay a sold answer of the same registry', async () => {
  let release = () => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  const asked = Array.from({ length: 8 }, (_, at) => `p${at}`);
  for (const name of asked) {
    server().answers[`GET /${name}/latest`] = async () => {
      await held;
      return { body: JSON.stringify({ name }) };
    };
  }
  const questions = asked.map((name) => question('npm', name));
  serve('GET /legacy', fixture('npm/legacy.json'));
  expect(await ask(packagesNpm, { name: 'legacy' })).toMatchObject({ name: 'legacy' });
  release();
  expect(await Promise.all(questions)).not.toContain(null);
});

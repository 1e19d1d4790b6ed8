import { expect, test } from 'vitest';
import { createUpstreams } from '../../../src/upstream/client/client.ts';
import { createRdapBootstrap } from '../../../src/upstream/domains/rdap.ts';
import { describeSamples, type Samples, seconds } from '../../support/upstream/name-samples.ts';
import { json } from '../../support/upstream/names.ts';
import { ask } from '../../support/upstream/names-endpoints.ts';
import { PATIENT_MS } from '../../support/upstream/patience.ts';

describeSamples(
  'domains/whois over recorded answers',
  { folders: ['rdap'], notAskedFor: ['rdap/iana-dns-bootstrap.headers.json', 'rdap/verisign-google.com.headers.json'] },
  (samples) => {
    const PROTECTED = ['delete', 'transfer', 'update'];

    test.each<[string, string, object]>([
      [
        'verisign-google.com',
        'google.com',
        {
          registrar: { name: 'MarkMonitor Inc.', ianaId: '292' },
          createdAt: seconds('1997-09-15T04:00:00Z'),
          updatedAt: seconds('2019-09-09T15:39:04Z'),
          expiresAt: seconds('2028-09-14T04:00:00Z'),
          status: ['client', 'server'].flatMap((who) => PROTECTED.map((what) => `${who} ${what} prohibited`)),
          nameServers: [1, 2, 3, 4].map((number) => `ns${number}.google.com`),
          dnssecSigned: false,
        },
      ],
      ['verisign-google.com-signed', 'google.com', { dnssecSigned: true, updatedAt: null }],
      [
        'verisign-themarquetry.com',
        'themarquetry.com',
        {
          registrar: { name: 'Hosting Concepts B.V. d/b/a Registrar.eu', ianaId: '1647' },
          expiresAt: seconds('2022-03-16T17:07:37Z'),
          status: ['client transfer prohibited'],
          nameServers: ['ns1.dns-parking.com', 'ns2.dns-parking.com'],
        },
      ],
      [
        'afnic-lemonde.fr',
        'lemonde.fr',
        {
          registrar: { name: 'NAMESHIELD', ianaId: '1251' },
          updatedAt: seconds('2024-06-12T22:09:39Z'),
          dnssecSigned: null,
          nameServers: { length: 4 },
        },
      ],
      [
        'flexireg-home.moscow',
        'home.moscow',
        {
          registrar: { ianaId: '1606' },
          updatedAt: seconds('2023-11-20T18:36:22Z'),
          source: { licence: 'Terms of use: https://flexireg.net/ru/whois-terms_of_use.en.html' },
        },
      ],
      [
        'markmonitor-google.com',
        'google.com',
        { registrar: { name: 'MarkMonitor Inc.', ianaId: '292' }, createdAt: seconds('1997-09-15T07:00:00Z') },
      ],
      [
        'nic.cz-example.cz',
        'example.cz',
        {
          registrar: { name: null, ianaId: null },
          createdAt: seconds('2004-08-30T22:55:00Z'),
          updatedAt: null,
          dnssecSigned: null,
        },
      ],
      [
        'norid-norway.no',
        'norway.no',
        { registrar: { name: 'Domeneshop AS', ianaId: null }, status: null, expiresAt: null, dnssecSigned: null },
      ],
      [
        'rfc9537-redacted-example.com',
        'example.com',
        { registrar: { name: 'Example Registrar Inc.', ianaId: '1' }, expiresAt: seconds('2021-06-03T04:00:00Z') },
      ],
      [
        'uniregistry-microsoft.click',
        'microsoft.click',
        { registrar: { name: 'MarkMonitor Inc.' }, createdAt: seconds('2014-11-12T19:15:55Z') },
      ],
    ])('understands the record %s', async (file, domain, expected) => {
      registryOf(samples, domain);
      samples.serve(`/registry/domain/${domain}`, `rdap/${file}.json`, 'application/rdap+json');
      expect(await ask(samples.world, '/domains/whois', { domain })).toMatchObject({
        domain,
        registered: true,
        looksAvailable: false,
        ...expected,
      });
    });

    test.each([
      ['search-with-redaction.json', 200],
      ['error-501-ripe.json', 501],
      ['error-501-ripe.json', 200],
    ])('treats %s with HTTP %i as a failure', async (file, status) => {
      registryOf(samples, 'example.com');
      samples.serve('/registry/domain/example.com', `rdap/${file}`, 'application/rdap+json', status);
      await expect(ask(samples.world, '/domains/whois', { domain: 'example.com' })).rejects.toMatchObject({
        status: 502,
      });
    });

    const bootstrapOf = () => {
      const upstreams = createUpstreams({ clock: samples.world.clock, userAgent: 'percall/test' });
      const bounds = { timeoutMs: PATIENT_MS, maxBytes: 1e6, concurrency: 1, retries: 0 } as const;
      const upstream = upstreams.open({ name: 'IANA', ...bounds });
      return createRdapBootstrap(upstream, samples.world.urls.rdapBootstrap, samples.world.clock);
    };

    test.each(['iana-dns-bootstrap.json', 'iana-dns-bootstrap-2025-11-06.json'])(
      'finds for every top-level domain the server that %s names',
      async (file) => {
        samples.serve('/iana/dns.json', `rdap/${file}`);
        const bootstrap = bootstrapOf();
        for (const [tlds, urls] of samples.parsed<{ services: [string[], string[]][] }>(`rdap/${file}`).services) {
          for (const tld of tlds) {
            const { url, vouched } = (await bootstrap.serverFor(`example.${tld}`))!;
            expect(urls).toContain(url);
            expect(vouched).toBe(true);
            if (urls.some((candidate) => candidate.startsWith('https:'))) expect(url).toMatch(/^https:/);
          }
        }
        expect((await bootstrap.serverFor('example.com'))?.url).toBe('https://rdap.verisign.com/com/v1/');
        expect(await bootstrap.serverFor('example.de')).toEqual({ url: 'https://rdap.denic.de/', vouched: false });
        expect(await bootstrap.serverFor('example.jp')).toBeNull();
      },
    );

    test('uses the usable entries of a malformed list', async () => {
      samples.serve('/iana/dns.json', 'rdap/bootstrap-bad-url.json');
      const bootstrap = bootstrapOf();
      expect((await bootstrap.serverFor('a.cz'))?.url).toBe('https://rdap.nic.cz/');
      expect((await bootstrap.serverFor('a.br'))?.url).toBe('https://rdap.registro.br/');
      expect(await bootstrap.serverFor('a.example')).toBeNull();
    });

    test.each([200, 404])('uses the bundled list when IANA sends a page with HTTP %i instead', async (status) => {
      samples.serve('/iana/dns.json', 'rdap/iana-404.html', 'text/html', status);
      const bootstrap = bootstrapOf();
      expect((await bootstrap.serverFor('a.com'))?.url).toBe('https://rdap.verisign.com/com/v1/');
      await expect(bootstrap.serverFor('a.example')).rejects.toMatchObject({ status: 502 });
    });
  },
);

/** Makes IANA's list name the local registry for a domain. */
function registryOf({ world }: Samples, domain: string): void {
  const tld = domain.split('.').at(-1);
  world.answers.set('/iana/dns.json', json({ publication: 'x', services: [[[tld], [`${world.origin}/registry/`]]] }));
}

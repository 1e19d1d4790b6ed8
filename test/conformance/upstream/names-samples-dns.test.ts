import { expect, test } from 'vitest';
import type { DnsType } from '../../../src/upstream/domains/dns.ts';
import { describeSamples, type Samples } from '../../support/upstream/name-samples.ts';
import { json } from '../../support/upstream/names.ts';
import { ask } from '../../support/upstream/names-endpoints.ts';

describeSamples(
  'domains/dns over recorded answers',
  {
    folders: ['dns'],
    notAskedFor: ['dns/cloudflare-DS.json', 'dns/cloudflare-RRSIG-servfail.json', 'dns/google-RRSIG-servfail.json'],
  },
  (samples) => {
    const UNSIGNED_CHAIN = [{ name: 'www.unde-pescuim.ro', target: 'ef9fdab2479440b3.vercel-dns-017.com', ttl: 300 }];
    const ABSENT = { status: 'NOERROR', exists: true, dnssecValidated: true, aliases: [] };
    const BOGUS = { status: 'SERVFAIL', exists: null, dnssecValidated: false };

    test.each<[string, object]>([
      ['A-nodata-signed-bbnj.app', { ...ABSENT, records: { A: [] } }],
      ['A-signed', { dnssecValidated: true, records: { A: [addr('64.29.17.65', 300), addr('216.198.79.65', 300)] } }],
      ['AAAA-doc-example', { records: { AAAA: [addr('2606:2800:220:1:248:1893:25c8:1946', 1726)] } }],
      ['AAAA-nodata', { ...ABSENT, records: { AAAA: [] } }],
      ['MX', { records: { MX: [12, 36, 66].map((preference) => expect.objectContaining({ preference, ttl: 286 })) } }],
      ['NS-signed', { dnssecValidated: true, records: { NS: [host('sky'), host('beau')] } }],
      ['TXT-dmarc', { records: { TXT: [expect.objectContaining({ text: DMARC })] } }],
      ['TXT-gmail.com-2026-10', { dnssecValidated: false, records: { TXT: { length: 4 } } }],
      ['TXT-spf', { records: { TXT: [{ text: SPF, ttl: 300 }] } }],
      ['TXT-two-records', { records: { TXT: { length: 2 } } }],
      ['dnssec-failed', { ...BOGUS, records: { A: [] } }],
      ['nxdomain', { status: 'NXDOMAIN', exists: false, dnssecValidated: false, records: { A: [] } }],
      ['unsigned-cname-flattened', { dnssecValidated: false, records: { A: [addr('103.235.47.188', 274)] } }],
      ['www-A-cname-chain', { aliases: UNSIGNED_CHAIN, dnssecValidated: false, records: { A: { length: 2 } } }],
      ['www-AAAA-cname-nodata', { exists: true, aliases: [{ ttl: 287 }], records: { AAAA: [] } }],
      ['www-CNAME', { dnssecValidated: true, aliases: UNSIGNED_CHAIN, records: { CNAME: { length: 1 } } }],
    ])('understands Cloudflare’s answer %s', async (name, expected) => {
      samples.serve('/cloudflare', `dns/cloudflare-${name}.json`, 'application/dns-json');
      expect(await askRecorded(samples, `dns/cloudflare-${name}.json`)).toMatchObject({
        ...expected,
        source: { name: 'Cloudflare 1.1.1.1' },
      });
    });

    test.each<[string, object]>([
      ['A-dns.google-2026-10', { dnssecValidated: true, records: { A: [addr('8.8.8.8', 220), addr('8.8.4.4', 220)] } }],
      ['A-signed', { records: { A: [addr('64.29.17.65', 286), addr('216.198.79.65', 286)] } }],
      ['AAAA-nodata', { ...ABSENT, records: { AAAA: [] } }],
      ['MX', { records: { MX: [12, 36, 66].map((preference) => expect.objectContaining({ preference, ttl: 300 })) } }],
      ['NS-signed', { dnssecValidated: true, records: { NS: [host('sky', 21600), host('beau', 21600)] } }],
      ['TXT-dmarc', { records: { TXT: [expect.objectContaining({ text: DMARC })] } }],
      ['TXT-spf', { records: { TXT: [{ text: SPF, ttl: 300 }] } }],
      ['dnssec-failed', { ...BOGUS, records: { A: [] } }],
      ['example.com-A', { dnssecValidated: true, records: { A: { length: 2 } } }],
      ['nxdomain', { status: 'NXDOMAIN', exists: false, dnssecValidated: false }],
      ['www-A-cname-chain', { aliases: UNSIGNED_CHAIN, records: { A: { length: 2 } } }],
    ])('understands Google’s answer %s, when Cloudflare fails', async (name, expected) => {
      samples.world.answers.set('/cloudflare', { status: 503, body: '' });
      samples.serve('/google', `dns/google-${name}.json`);
      expect(await askRecorded(samples, `dns/google-${name}.json`)).toMatchObject({
        ...expected,
        source: { name: 'Google Public DNS' },
      });
    });

    test('treats a refused query as a failure of ours, and gives no answer', async () => {
      samples.serve('/cloudflare', 'dns/cloudflare-error-400.json', 'application/json', 400);
      await expect(ask(samples.world, '/domains/dns', { name: 'example.com', type: 'A' })).rejects.toMatchObject({
        status: 502,
      });
    });

    test('reads both forms of a CAA record as the same record', async () => {
      for (const { data, means } of samples.parsed('dns/caa-data-strings.json') as { data: string; means: string }[]) {
        const answer = (text: string) => ({
          Status: 0,
          TC: false,
          RD: true,
          RA: true,
          AD: false,
          CD: false,
          Question: [{ name: 'example.com', type: 257 }],
          Answer: [{ name: 'example.com', type: 257, TTL: 60, data: text }],
        });
        const read = async (text: string) => {
          samples.world.answers.set('/cloudflare', json(answer(text), 'application/dns-json'));
          return (await ask(samples.world, '/domains/dns', { name: 'example.com', type: 'CAA' })).records;
        };
        expect(await read(data)).toEqual(await read(means));
      }
    });
  },
);

const SPF = 'v=spf1 include:_spf.mx.cloudflare.net ~all';
const DMARC = 'v=DMARC1; p=none; rua=mailto:contact@unde-pescuim.ro; adkim=s; aspf=s; pct=100';
function addr(address: string, ttl: number) {
  return { address, ttl };
}
function host(name: string, ttl = 86400) {
  return { nameServer: `${name}.ns.cloudflare.com`, ttl };
}

/** Asks the query of the recording. */
function askRecorded({ world, parsed }: Samples, file: string): Promise<Record<string, unknown>> {
  const types: Record<number, DnsType> = { 1: 'A', 28: 'AAAA', 5: 'CNAME', 15: 'MX', 16: 'TXT', 2: 'NS' };
  const [{ name, type }] = parsed<{ Question: [{ name: string; type: number }] }>(file).Question;
  return ask(world, '/domains/dns', { name, type: types[type]! });
}

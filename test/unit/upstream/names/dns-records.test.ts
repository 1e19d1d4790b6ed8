import { describe, expect, test } from 'vitest';
import { type DnsType, parseRecordData, plainName } from '../../../../src/upstream/domains/dns.ts';

describe('parseRecordData', () => {
  test.each<[DnsType, string, object]>([
    ['A', '192.0.2.1', { address: '192.0.2.1' }],
    ['AAAA', '2001:db8::1', { address: '2001:db8::1' }],
    ['CNAME', 'Target.Example.', { target: 'target.example' }],
    ['NS', 'ns1.example.net', { nameServer: 'ns1.example.net' }],
    ['MX', '10 mail.example.com.', { preference: 10, exchange: 'mail.example.com' }],
    ['MX', '0 .', { preference: 0, exchange: '.' }],
    [
      'SOA',
      'ns.example. host\\.master.example. 4294967295 10000 2400 604800 1800',
      {
        primaryNameServer: 'ns.example',
        hostmaster: 'host\\.master.example',
        serial: 4294967295,
        refreshSeconds: 10000,
        retrySeconds: 2400,
        expireSeconds: 604800,
        minimumSeconds: 1800,
      },
    ],
    ['TXT', '"v=spf1 -all"', { text: 'v=spf1 -all' }],
    ['TXT', 'v=spf1 -all', { text: 'v=spf1 -all' }],
    ['TXT', '"part one, " "part two"', { text: 'part one, part two' }],
    ['TXT', '"a \\"quoted\\" \\\\ word"', { text: 'a "quoted" \\ word' }],
    ['TXT', '"caf\\195\\169"', { text: 'café' }],
    ['TXT', '""', { text: '' }],
    ['TXT', 'bare with a " in it', { text: 'bare with a " in it' }],
    ['CAA', '0 issue "letsencrypt.org"', { flags: 0, tag: 'issue', value: 'letsencrypt.org' }],
    ['CAA', '128 IODEF "mailto:a@example.com"', { flags: 128, tag: 'iodef', value: 'mailto:a@example.com' }],
    ['CAA', '0 issue ";"', { flags: 0, tag: 'issue', value: ';' }],
    [
      'CAA',
      '\\# 19 00 05 69 73 73 75 65 63 6f 6d 6f 64 6f 63 61 2e 63 6f 6d',
      { flags: 0, tag: 'issue', value: 'comodoca.com' },
    ],
  ])('%s %s', (type, data, fields) => {
    expect(parseRecordData(type, data)).toEqual(fields);
  });

  test.each<[DnsType, string]>([
    ['A', '192.0.2'],
    ['A', '2001:db8::1'],
    ['AAAA', '192.0.2.1'],
    ['AAAA', ''],
    ['CNAME', ''],
    ['NS', 'two words'],
    ['MX', 'mail.example.com.'],
    ['MX', '10 a b'],
    ['SOA', 'ns.example. host.example. 1 2 3 4'],
    ['CAA', 'issue "letsencrypt.org"'],
    ['CAA', '\\# 20 00 05 69 73 73 75 65 63 6f 6d 6f 64 6f 63 61 2e 63 6f 6d'],
    ['CAA', '\\# 3 00 05 69'],
    ['CAA', '\\# 2 00 00'],
    ['CAA', '\\# zz'],
  ])('%s %o is none', (type, data) => {
    expect(parseRecordData(type, data)).toBeNull();
  });
});

test('names lose one trailing dot and their letter case; the root keeps its dot', () => {
  expect(['NS1.Example.', 'a', '.'].map(plainName)).toEqual(['ns1.example', 'a', '.']);
});

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ipaddr from 'ipaddr.js';
import { describe, expect, test } from 'vitest';
import { isPublicAddress } from '../../../../src/upstream/guard/guard.ts';

const SAMPLES = join(import.meta.dirname, '../../../../../shared/samples/ssrf');

/** First and last address of a range. */
function ends(range: string): string[] {
  const [network, prefix] = ipaddr.parseCIDR(range);
  const first = network.toByteArray();
  const last = first.map((byte, at) => {
    const free = Math.min(8, Math.max(0, (at + 1) * 8 - prefix));
    return byte | (2 ** free - 1);
  });
  return [first, last].map((bytes) => ipaddr.fromByteArray(bytes).toString());
}

/** The address blocks of one of IANA's registries; footnotes and lists in a cell taken apart. */
function blocksOf(file: string): string[] {
  const rows = readFileSync(join(SAMPLES, file), 'utf8').split('\n').slice(1);
  return rows.flatMap((row) => {
    const cell = /^(?:"([^"]*)"|([^,]*)),/.exec(row);
    return (cell?.[1] ?? cell?.[2] ?? '').match(/[0-9a-f.:]+\/\d+/gi) ?? [];
  });
}

describe.skipIf(!existsSync(SAMPLES))("IANA's registries (../shared/samples)", () => {
  test.each([
    ['iana-ipv4-special-registry-1.csv', 25],
    ['iana-ipv6-special-registry-1.csv', 21],
  ])('no row of %s is public, at either end', (file, atLeast) => {
    const blocks = blocksOf(file);
    expect(blocks.length).toBeGreaterThanOrEqual(atLeast);
    expect(blocks.flatMap(ends).filter(isPublicAddress)).toEqual([]);
  });
});

test.each([
  ...['0.0.0.0', '10.255.255.255', '100.64.0.1', '127.0.0.1', '169.254.169.254', '172.31.255.255', '192.168.1.1'],
  ...['192.0.0.192', '198.19.255.255', '224.0.0.1', '239.255.255.255', '255.255.255.255', '168.63.129.16'],
  ...['::', '::1', '::7f00:1', '::ffff:127.0.0.1', '::ffff:8.8.8.8', '64:ff9b::7f00:1', '64:ff9b::808:808'],
  ...['64:ff9b:1::1', '100::1', '2001::1', '2001:0:4136:e378::', '2001:db8::1', '2002:7f00:1::', '2002:808:808::1'],
  ...['2620:4f:8000::1', '3ffe::1', '3fff::1', '4000::1', '5f00::1', 'fc00::1', 'fd00:ec2::254', 'fe80::1', 'fec0::1'],
  ...['ff02::1', 'fe80::1%eth0', '2606:4700::1%eth0', '', 'localhost', '1.2.3', '0x8080808', '8.8.8.8 '],
])('%s is not public', (address) => {
  expect(isPublicAddress(address)).toBe(false);
});

test.each([
  ...[
    '1.1.1.1',
    '8.8.8.8',
    '9.255.255.255',
    '11.0.0.0',
    '100.63.255.255',
    '100.128.0.0',
    '126.255.255.255',
    '128.0.0.0',
  ],
  ...['169.253.255.255', '169.255.0.0', '172.15.255.255', '172.32.0.0', '192.0.1.0', '192.167.255.255', '192.169.0.0'],
  ...['198.17.255.255', '198.20.0.0', '223.255.255.255', '168.63.129.15', '2001:200::1', '2001:4860:4860::8888'],
  ...['2003::1', '2606:4700:4700::1111', '2a00:1450:4001:80e::200e', '2620:4f:7fff::1', '3fff:1000::1', '2400::1'],
])('%s is public', (address) => {
  expect(isPublicAddress(address)).toBe(true);
});

import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { isRecordOf, rdapDomainSchema, registrationOf } from '../../../../src/upstream/domains/rdap.ts';

const FIXTURE = JSON.parse(
  readFileSync(new URL('../../../fixtures/names/rdap-domain.json', import.meta.url), 'utf8'),
) as Record<string, unknown>;
const MINIMAL = { objectClassName: 'domain', ldhName: 'example.com' };
const read = (record: object) => registrationOf(rdapDomainSchema.parse(record));
const seconds = (iso: string) => Date.parse(iso) / 1000;

describe('registrationOf', () => {
  test('takes the facts, in our forms, and no person', () => {
    const registration = read(FIXTURE);
    expect(registration).toEqual({
      registrar: { name: 'Example Registrar, Inc.', ianaId: '9999' },
      createdAt: seconds('2001-02-03T04:05:06Z'),
      updatedAt: seconds('2024-06-01T00:00:00Z'),
      expiresAt: seconds('2031-02-03T04:05:06Z'),
      status: ['client transfer prohibited', 'active'],
      nameServers: ['ns1.example.net', 'ns2.example.net'],
      dnssecSigned: true,
      termsUrl: 'https://registry.example/terms',
    });
    expect(JSON.stringify(registration)).not.toContain('A Person');
  });

  test('a member that the registry leaves out is null', () => {
    expect(read(MINIMAL)).toEqual({
      registrar: null,
      createdAt: null,
      updatedAt: null,
      expiresAt: null,
      status: null,
      nameServers: null,
      dnssecSigned: null,
      termsUrl: null,
    });
  });

  test.each(['', '  ', 'REDACTED', 'Redacted for Privacy'])('a registrar called %o counts as unknown', (name) => {
    const entities = [{ roles: ['registrar'], vcardArray: ['vcard', [['fn', {}, 'text', name]]] }];
    expect(read({ ...MINIMAL, entities }).registrar).toEqual({ name: null, ianaId: null });
  });

  test('a registrar may be named by its organisation, or by a card that is none', () => {
    const named = [{ roles: ['registrar'], vcardArray: ['vcard', [['org', {}, 'text', 'Org Ltd']]] }];
    expect(read({ ...MINIMAL, entities: named }).registrar?.name).toBe('Org Ltd');
    const broken = [{ roles: ['registrar'], vcardArray: 'none' }];
    expect(read({ ...MINIMAL, entities: broken }).registrar).toEqual({ name: null, ianaId: null });
  });

  test.each([
    ['2020-01-02T03:04:05Z', seconds('2020-01-02T03:04:05Z')],
    ['2020-01-02T03:04:05.999999+02:00', seconds('2020-01-02T01:04:05Z')],
    ['2020-01-02T03:04:05', seconds('2020-01-02T03:04:05Z')],
    ['2020-01-02', seconds('2020-01-02T00:00:00Z')],
    ['2020-13-02T00:00:00Z', null],
    ['02.01.2020', null],
    ['', null],
  ])('the date %o is %o', (eventDate, expected) => {
    expect(read({ ...MINIMAL, events: [{ eventAction: 'Registration', eventDate }] }).createdAt).toBe(expected);
  });
});

describe('isRecordOf', () => {
  test.each([
    [{ ldhName: 'EXAMPLE.COM' }, true],
    [{ ldhName: 'example.com.' }, true],
    [{ ldhName: 'example.net' }, false],
    [{ ldhName: 'www.example.com' }, false],
    [{}, false],
  ])('%o: %o', (names, expected) => {
    expect(isRecordOf('example.com', rdapDomainSchema.parse({ objectClassName: 'domain', ...names }))).toBe(expected);
  });

  test('an internationalised name may be given in Unicode alone', () => {
    const record = rdapDomainSchema.parse({ objectClassName: 'domain', unicodeName: 'münchen.de' });
    expect(isRecordOf('xn--mnchen-3ya.de', record)).toBe(true);
  });
});

test.each([
  ['a search answer', { rdapConformance: [], domainSearchResults: [MINIMAL] }],
  ['an error object', { errorCode: 501, title: 'Not Implemented' }],
  ['an entity', { ...MINIMAL, objectClassName: 'entity' }],
  ['a list', [MINIMAL]],
])('%s is no domain record', (_what, record) => {
  expect(rdapDomainSchema.safeParse(record).success).toBe(false);
});

import { Challenge } from 'mppx';
import { describe, expect, test } from 'vitest';
import { readAuthChallenges } from '../../../cli/challenges.ts';
import { cpuTimeMs } from '../../support/cpu-time.ts';

const read = (header: string) =>
  readAuthChallenges(header).map(({ scheme, params }) => [scheme, Object.fromEntries(params)]);

const L402 = 'L402 macaroon="AgEH/+==", invoice="lnbc1"';
const MPP =
  'Payment id="a", realm="here.example", method="lightning", intent="charge", request="eyJhbW91bnQiOiIxIn0", expires="2026-12-01T00:05:00Z"';

describe('the challenges of a WWW-Authenticate header', () => {
  test('are read one by one, also when the client has joined several lines', () => {
    expect(read(`${L402}, ${MPP}, Basic realm="x, y"`)).toEqual([
      ['l402', { macaroon: 'AgEH/+==', invoice: 'lnbc1' }],
      [
        'payment',
        {
          id: 'a',
          realm: 'here.example',
          method: 'lightning',
          intent: 'charge',
          request: 'eyJhbW91bnQiOiIxIn0',
          expires: '2026-12-01T00:05:00Z',
        },
      ],
      ['basic', { realm: 'x, y' }],
    ]);
  });

  test('have the parameters that the library of MPP reads', () => {
    const { id, realm, method, intent, expires } = Challenge.deserialize(MPP);
    const [, params] = read(MPP)[0] ?? [];
    expect(params).toMatchObject({ id, realm, method, intent, expires });
  });

  test.each([
    ['a scheme in any case', 'PaYmEnT ID="a"', [['payment', { id: 'a' }]]],
    ['escaped quotes', 'Payment id="a\\"b\\\\"', [['payment', { id: 'a"b\\' }]]],
    [
      'values without quotes',
      'L402 macaroon=AgEH/+==, invoice=lnbc1',
      [['l402', { macaroon: 'AgEH/+==', invoice: 'lnbc1' }]],
    ],
    ['spaces around the equals sign', 'L402 a = "1" , b="2"', [['l402', { a: '1', b: '2' }]]],
    [
      'a value in place of parameters',
      `Negotiate YWJj==, ${L402}`,
      [
        ['negotiate', {}],
        ['l402', { macaroon: 'AgEH/+==', invoice: 'lnbc1' }],
      ],
    ],
    [
      'a scheme alone',
      `Negotiate, ${L402}`,
      [
        ['negotiate', {}],
        ['l402', { macaroon: 'AgEH/+==', invoice: 'lnbc1' }],
      ],
    ],
    ['nothing', '', []],
    ['no challenge', '"quoted"', []],
    ['a parameter without a scheme', 'a="1"', []],
  ])('are read with %s', (_what, header, expected) => {
    expect(read(header)).toEqual(expected);
  });

  test.each([
    ['names a parameter twice', `Payment id="a", id="b", ${L402}`, ['l402']],
    ['breaks off', `${L402}, Payment id="a`, ['l402']],
    ['has text that is no parameter', `${L402}, Payment id="a" @@`, ['l402']],
  ])('leave out the one that %s', (_how, header, schemes) => {
    expect(read(header).map(([scheme]) => scheme)).toEqual(schemes);
  });

  test('are read from any text without an error and in linear time', () => {
    const texts = [
      'a='.repeat(50_000),
      'L402 '.repeat(20_000),
      `Payment id="${'\\'.repeat(60_000)}`,
      ',='.repeat(30_000),
    ];
    const readAll = () => {
      for (const text of texts) expect(readAuthChallenges(text)).toBeInstanceOf(Array);
    };
    expect(cpuTimeMs(2000, readAll)).toBeLessThan(2000);
  });
});

import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { catalogue } from '../../../src/catalogue/catalogue.ts';
import { listedPath } from '../../../src/catalogue/paths.ts';

interface Schema {
  readonly type?: string;
  readonly pattern?: string;
  readonly anyOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly additionalProperties?: Schema | boolean;
}

/** A quantity of an answer: a number with a fraction, or digits as text. Counts and block numbers are integers and need no unit. */
interface Quantity {
  /** Its name and those of the objects around it, the innermost first. */
  readonly names: readonly string[];
  readonly pattern: string | undefined;
  /** The names beside it and beside each object around it, the innermost first. */
  readonly beside: readonly (readonly string[])[];
}

/** Names that end in their unit: `costUsdc`, `volumeUsdc1h`, `latencyMs`. */
const UNIT = /(Wei|Gwei|Usdc|Usd|Percent|Share|Bps|Seconds|PerSecond|Ms|Blocks|Raw)(\d+[hd])?$/;
const WHOLE_NAME = ['wei', 'gwei', 'usdc', 'usd', 'share'];
/** The field beside a quantity, or beside an object around it, that says its unit. */
const SAID_BESIDE: Record<string, readonly string[]> = {
  ...Object.fromEntries(
    ['rate', 'vwap', 'low', 'high', 'vwap1h', 'low1h', 'high1h'].map((name) => [name, ['rateUnit', 'from']]),
  ),
  volumeBase: ['baseUnit'],
  total: ['unit'],
  last24h: ['unit'],
  supplyOnChain: ['supplyUnit'],
  amount: ['unit', 'symbol', 'from'],
  balance: ['symbol'],
  totalSupply: ['symbol'],
  result: ['to'],
  rates: ['base'],
};
/** Numbers without a unit. */
const PLAIN: Record<string, string> = { score: 'CVSS, 0 to 10', round: 'an id' };
/** Released names that say no unit, each with the one beside it that does. */
const OLD: Record<string, string> = {
  utilisation: 'utilisationShare',
  slopePerHour: 'slopeSharePerHour',
  errorRate: 'errorShare',
  slippageBps: 'deviationFromVwapBps',
  share: 'volumeShare',
  windowCollected: 'windowCollectedShare',
  change24h: 'change24hPercent',
  annualised7d: 'annualised7dPercent',
  annualised30d: 'annualised30dPercent',
};
const SIX_DECIMALS = '^\\d+(\\.\\d{1,6})?$';

function quantitiesOf(schema: Schema): Quantity[] {
  const found: Quantity[] = [];
  const walk = (node: Schema, names: readonly string[], beside: readonly (readonly string[])[]): void => {
    for (const part of node.anyOf ?? []) walk(part, names, beside);
    const isDigits = node.type === 'string' && /^\^(-\?)?\\d/.test(node.pattern ?? '');
    if (node.type === 'number' || isDigits) found.push({ names, pattern: node.pattern, beside });
    const own = Object.keys(node.properties ?? {});
    for (const [name, property] of Object.entries(node.properties ?? {}))
      walk(property, [name, ...names], [own, ...beside]);
    if (node.items) walk(node.items, names, beside);
    if (typeof node.additionalProperties === 'object') walk(node.additionalProperties, names, beside);
  };
  walk(schema, [], []);
  return found;
}

/** How a reader learns the unit; null when not at all. */
function unitOf({ names, beside }: Quantity): string | null {
  const [name = ''] = names;
  if (name in PLAIN) return PLAIN[name]!;
  if (name in OLD) return beside[0]?.includes(OLD[name]!) ? `as ${OLD[name]}` : null;
  if (name === 'slopeSharePerHour') return 'share an hour';
  const said = SAID_BESIDE[name]?.find((unit) => beside.some((fields) => fields.includes(unit)));
  if (said !== undefined) return said;
  return names.find((one) => UNIT.test(one) || WHOLE_NAME.includes(one)) ?? null;
}

const answers = catalogue.map((endpoint) => {
  const schema = z.toJSONSchema(endpoint.result, { io: 'output' }) as Schema;
  return { path: `${endpoint.access} ${listedPath(endpoint)}`, endpoint, quantities: quantitiesOf(schema) };
});

test('the walk finds the quantities', () => {
  expect(answers.flatMap(({ quantities }) => quantities).length).toBeGreaterThan(120);
});

describe.each(answers.filter(({ quantities }) => quantities.length > 0))('$path', ({ quantities, endpoint }) => {
  test('every quantity says its unit, by its name or by a field beside it', () => {
    const silent = quantities.filter((quantity) => unitOf(quantity) === null);
    expect(silent.map(({ names }) => names.toReversed().join('.'))).toEqual([]);
  });

  test('no amount of USDC has more than six decimals, except the native balance, which has all 18', () => {
    const inUsdc = quantities.filter(({ names }) => names.some((name) => /^usdc$|Usdc(\d+h)?$/.test(name)));
    for (const { names, pattern } of inUsdc) {
      if (names[0] !== 'nativeUsdc')
        expect([names.toReversed().join('.'), pattern]).toEqual([expect.anything(), SIX_DECIMALS]);
    }
  });

  test('an old name has the value of the name that says its unit', () => {
    const compare = (value: unknown): void => {
      if (typeof value !== 'object' || value === null) return;
      const fields = value as Record<string, unknown>;
      for (const [old, name] of Object.entries(OLD))
        if (old in fields && name in fields) expect(fields[old]).toBe(fields[name]);
      for (const inner of Object.values(fields)) compare(inner);
    };
    compare(endpoint.example.result);
  });
});

test('a quantity without a unit is found', () => {
  const schema = z.toJSONSchema(
    z.object({
      price: z.number(),
      costUsdc: z.string().regex(/^\d+(\.\d+)?$/),
      inner: z.object({ amount: z.string().regex(/^\d+$/) }),
    }),
  ) as Schema;
  expect(quantitiesOf(schema).filter((quantity) => unitOf(quantity) === null)).toMatchObject([
    { names: ['price'] },
    { names: ['amount', 'inner'] },
  ]);
});

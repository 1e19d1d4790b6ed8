const KEYS = ['a', 'b', '', '__proto__', 'constructor', 'toJSON', 'length', '\u00e9', '\u{1f600}', '10', '9', 'extra'];
const TEXTS = [
  '',
  'a',
  '0',
  '-1',
  '1e3',
  'exact',
  'BTC',
  '\u00e9\u{1f600}',
  '\u0000\n"\\',
  '__proto__',
  'ff'.repeat(32),
];

/** Any JSON value, small; keys that JavaScript treats specially are frequent, and stand in the object as JSON.parse puts them. */
export function randomJson(random: () => number, depth = 0): unknown {
  const one = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
  const kind = Math.floor(random() * (depth < 4 ? 8 : 5));
  if (kind === 0) return one([null, true, false]);
  if (kind === 1) return one([0, 1, -1, 0.1, 1e21, 5e-324, 2 ** 53, 25000, 300, Math.floor(random() * 2 ** 32)]);
  if (kind < 5) return one(TEXTS);
  const size = Math.floor(random() * 4);
  if (kind === 5) return Array.from({ length: size }, () => randomJson(random, depth + 1));
  const object = {};
  for (let n = 0; n < size; n++) {
    const value = randomJson(random, depth + 1);
    Object.defineProperty(object, one(KEYS), { value, enumerable: true, writable: true, configurable: true });
  }
  return object;
}

import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import {
  type Binding,
  bindHttp,
  bindMcp,
  type HttpRequest,
  type McpCall,
} from '../../../../src/payment/lightning/binding.ts';

const sha256 = (...parts: (string | Uint8Array)[]) => {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest('hex');
};
const hex = (binding: Binding | null) => binding && Buffer.from(binding.hash).toString('hex');
const parsed = (binding: Binding | null) => JSON.parse(binding?.canonical ?? 'null');
const PRESENT = Buffer.of(1);
const ABSENT = sha256(Buffer.of(0));

const ARTICLE = 'https://api.example.com/article/A';
const EMPTY = new Uint8Array();
const http = (request: Partial<HttpRequest> = {}) => bindHttp({ method: 'GET', url: ARTICLE, body: EMPTY, ...request });
const mcp = (call: Partial<McpCall> = {}) =>
  bindMcp({ server: 'https://api.example.com/mcp', name: 'get_article', arguments: { article: 'A' }, ...call });

describe('http:1', () => {
  test.each([
    ['GET A', {}, '0d6623f775e025501fa7f0a30b54da25aad62b6ccfe35c85da38016711e6c018'],
    [
      'GET B',
      { url: 'https://api.example.com/article/B' },
      '4a99860f75eed1ea8178a5db488e044173bc570c8a6210f2c8590cdf8622d509',
    ],
    ['POST A', { method: 'POST' }, 'a66ae81d2b71d1d7f852985ee9db1388df785560d57114524bf7c77512962d08'],
  ])("has the hash of the scheme's vector: %s", (_, request, hash) => {
    expect(hex(http(request))).toBe(hash);
  });

  test("has the canonical text of the scheme's vector, and its hash is that of the text", () => {
    expect(http()?.canonical).toBe(
      '{"bodyHash":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855","domain":"x402:exact:lnbtc:bolt11:http:1","headers":[],"method":"GET","url":"https://api.example.com/article/A"}',
    );
    expect(hex(http())).toBe(sha256(http()?.canonical ?? ''));
  });

  test('keeps the case of the method', () => {
    expect(parsed(http({ method: 'get' })).method).toBe('get');
    expect(hex(http({ method: 'get' }))).not.toBe(hex(http()));
  });

  test.each(['', 'GE T', 'GET\n', 'GÉT', 'GET:'])('refuses the method %j', (method) => {
    expect(http({ method })).toBeNull();
  });

  test.each([
    'https://api.example.com',
    'https://api.example.com/',
    'https://api.example.com/?',
    'https://api.example.com?',
    'https://api.example.com/a?b=1&a=2&b=1',
    'https://api.example.com/a?a=2&b=1',
    'https://api.example.com/%61?x=%7e%7E+%20',
    'https://api.example.com/%2F%aB?%25zz',
    'https://api.example.com/a/../b//c/./',
    'https://api.example.com/a?url=https://u@elsewhere.example/',
    'https://api.example.com/{a}|"b"<c>^`\\?q=[1]',
    'https://api.example.com:443/',
    'HTTPS://API.example.COM/A',
    'http://localhost:4021/v1',
    'http://127.0.0.1:4021/v1',
    'http://[::1]:4021/v1',
    'http://under_score.internal/v1',
  ])('keeps %s byte for byte', (url) => {
    expect(parsed(http({ url })).url).toBe(url);
  });

  test('distinguishes URLs that a normaliser would make equal', () => {
    const urls = ['', '/', '/?', '?', '/a', '/%61', '/A', '/a/', '/a?x&y', '/a?y&x', '/a?x&y&', '/./a'];
    const hashes = urls.map((end) => hex(http({ url: `https://api.example.com${end}` })));
    expect(hashes).not.toContain(null);
    expect(new Set(hashes).size).toBe(urls.length);
  });

  test.each([
    ['a fragment', 'https://api.example.com/a#b'],
    ['an empty fragment', 'https://api.example.com/a#'],
    ['a user', 'https://user@api.example.com/a'],
    ['a user and a password', 'https://user:secret@api.example.com/a'],
    ['an empty user', 'https://@api.example.com/a'],
    ['a user behind a backslash', 'https://api.example.com\\@elsewhere.example/a'],
    ['another scheme', 'ftp://api.example.com/a'],
    ['a path alone', '/article/A'],
    ['no scheme', '//api.example.com/a'],
    ['no host', 'https:///a'],
    ['one slash', 'https:/api.example.com/a'],
    ['a letter past ASCII in the path', 'https://api.example.com/é'],
    ['a letter past ASCII in the query', 'https://api.example.com/?é'],
    ['a letter past ASCII in the host', 'https://apı.example.com/'],
    ['a letter that folds to ASCII', 'https://api.example.com/\u212a'],
    ['a space', 'https://api.example.com/a b'],
    ['a line break', 'https://api.example.com/a\n'],
    ['a tab', 'https://api.example.com/\ta'],
    ['white space in front', ' https://api.example.com/a'],
    ['an impossible port', 'https://api.example.com:65536/a'],
    ['a port of letters', 'https://api.example.com:http/a'],
    ['an impossible address', 'http://999.1.1.1/a'],
    ['an escape without hex digits in the path', 'https://api.example.com/article/A%zz'],
    ['an escape without hex digits in the query', 'https://api.example.com/a?b=%zz'],
    ['an escape whose second digit is none', 'https://api.example.com/a?b=%aZ'],
    ['an escape whose first digit is none', 'https://api.example.com/a?b=%Za'],
    ['an escape cut after one digit', 'https://api.example.com/a?b=%a'],
    ['an escape cut after one digit, and more behind it', 'https://api.example.com/a?b=%a&c=1'],
    ['a percent sign at its end', 'https://api.example.com/a%'],
    ['two percent signs before the digits', 'https://api.example.com/a%%41'],
    ['nothing', ''],
  ])('refuses a URL with %s', (_, url) => {
    expect(http({ url })).toBeNull();
  });

  test('refuses a method and a URL that are no text, whatever text they could be made into', () => {
    for (const method of [5, ['GET'], { toString: () => 'GET' }]) expect(http({ method: method as string })).toBeNull();
    for (const url of [[ARTICLE], new URL(ARTICLE)]) expect(http({ url: url as unknown as string })).toBeNull();
  });

  test('binds the bytes of the body', () => {
    const body = Buffer.from('{"a":1}');
    expect(parsed(http({ body })).bodyHash).toBe(sha256(body));
    expect(parsed(http()).bodyHash).toBe(sha256(''));
    expect(http({ body: 'text' as unknown as Uint8Array })).toBeNull();
  });

  test("binds the values of named headers in the names' order, and nothing of the others", () => {
    const headers = { accept: 'text/html', 'x-a': '1', cookie: 'c' };
    const binding = http({ headers, bound: ['accept', 'x-a', 'x-b'] });
    expect(parsed(binding).headers).toEqual([
      { name: 'accept', valueHash: sha256(PRESENT, 'text/html') },
      { name: 'x-a', valueHash: sha256(PRESENT, '1') },
      { name: 'x-b', valueHash: ABSENT },
    ]);
    expect(hex(http({ headers: { ...headers, cookie: 'd' }, bound: ['accept', 'x-a', 'x-b'] }))).toBe(hex(binding));
    expect(hex(http({ headers }))).toBe(hex(http()));
  });

  test('distinguishes an empty value from an absent one', () => {
    const valueHash = (headers: Record<string, string>) =>
      parsed(http({ headers, bound: ['x-a'] })).headers[0].valueHash;
    expect(valueHash({ 'x-a': '' })).toBe(sha256(PRESENT));
    expect(valueHash({})).toBe(ABSENT);
  });

  test('takes optional white space off the ends of a value and keeps it inside', () => {
    const valueHash = (value: string) =>
      parsed(http({ headers: { 'x-a': value }, bound: ['x-a'] })).headers[0].valueHash;
    expect(valueHash(' \t one, \t two\t ')).toBe(sha256(PRESENT, 'one, \t two'));
    expect(valueHash(' \t ')).toBe(sha256(PRESENT));
  });

  test.each(['a\rb', 'a\nb', 'a\r\n b', '\n', 'a\r', 'é', '\u00a0', '\ufeffa', 'a\u0000', 'a\u007f'])(
    'refuses the bound value %j, and ignores it where it is not bound',
    (value) => {
      expect(http({ headers: { 'x-a': value }, bound: ['x-a'] })).toBeNull();
      expect(hex(http({ headers: { 'x-a': value } }))).toBe(hex(http()));
    },
  );

  test('reads no header out of a prototype', () => {
    const binding = http({ headers: {}, bound: ['__proto__', 'constructor', 'tostring'] });
    expect(parsed(binding).headers.map(({ valueHash }: { valueHash: string }) => valueHash)).toEqual([
      ABSENT,
      ABSENT,
      ABSENT,
    ]);
    const own = JSON.parse('{"__proto__":"a"}');
    expect(parsed(http({ headers: own, bound: ['__proto__'] })).headers[0].valueHash).toBe(sha256(PRESENT, 'a'));
  });

  test('refuses a bound value that is no text', () => {
    expect(http({ headers: { 'x-a': ['1', '2'] as unknown as string }, bound: ['x-a'] })).toBeNull();
  });
});

describe('mcp:1', () => {
  test.each([
    ['get_article A', {}, '03941bfedc6af8a09b2f459fe83470284a76a8c75801caa9e1487a9276a693f4'],
    [
      'get_article B',
      { arguments: { article: 'B' } },
      'b3e425970d64cd4f08fc4d57a11b76da59ce6a5760d92687398c91f063120678',
    ],
    [
      'delete_article A',
      { name: 'delete_article' },
      '3a52bbf19dda8b5765a27246b12e805770298273b48526956c421f02fe043455',
    ],
  ])("has the hash of the scheme's vector: %s", (_, call, hash) => {
    expect(hex(mcp(call))).toBe(hash);
  });

  test('binds exactly domain, server, method, name, arguments and metadata', () => {
    expect(parsed(mcp())).toEqual({
      domain: 'x402:exact:lnbtc:bolt11:mcp:1',
      server: 'https://api.example.com/mcp',
      method: 'tools/call',
      name: 'get_article',
      arguments: { article: 'A' },
      metadata: [],
    });
  });

  test('has the part that a requirement declares', () => {
    const params = { server: 'https://api.example.com/mcp', metadata: ['account'] };
    expect(mcp({ bound: ['account'] })).toMatchObject({ profile: 'mcp:1', params });
    expect(http({ bound: ['accept'] })).toMatchObject({ profile: 'http:1', params: { headers: ['accept'] } });
  });

  test('takes arguments that were left out for none', () => {
    expect(hex(mcp({ arguments: undefined }))).toBe(hex(mcp({ arguments: {} })));
    expect(hex(bindMcp({ server: 'https://api.example.com/mcp', name: 'get_article' }))).toBe(
      hex(mcp({ arguments: {} })),
    );
  });

  test.each<[string, unknown]>([
    ['null', null],
    ['an array', []],
    ['text', 'a'],
    ['a number', 0],
    ['a boolean', false],
    ['a date', new Date(0)],
    ['a map', new Map()],
    ['what is not JSON', { a: undefined }],
    ['a lone surrogate', { a: '\ud83d' }],
    [
      'a proxy that throws',
      new Proxy(
        {},
        {
          ownKeys: () => {
            throw new Error('trap');
          },
        },
      ),
    ],
  ])('refuses arguments that are %s', (_, given) => {
    expect(mcp({ arguments: given })).toBeNull();
  });

  test('the order of the arguments changes nothing, their values do', () => {
    const one = hex(mcp({ arguments: { a: 1, b: { c: [1, 2], d: null } } }));
    expect(hex(mcp({ arguments: { b: { d: null, c: [1, 2] }, a: 1 } }))).toBe(one);
    expect(hex(mcp({ arguments: { a: 1, b: { c: [2, 1], d: null } } }))).not.toBe(one);
    expect(hex(mcp({ arguments: { a: '1', b: { c: [1, 2], d: null } } }))).not.toBe(one);
  });

  test('binds named metadata by its canonical text, and distinguishes null from absent', () => {
    const metadata = { 'example.com/a': { b: 1, a: [] }, 'example.com/n': null, other: 1 };
    const bound = ['example.com/a', 'example.com/n', 'example.com/z'];
    expect(parsed(mcp({ metadata, bound })).metadata).toEqual([
      { name: 'example.com/a', valueHash: sha256(PRESENT, '{"a":[],"b":1}') },
      { name: 'example.com/n', valueHash: sha256(PRESENT, 'null') },
      { name: 'example.com/z', valueHash: ABSENT },
    ]);
    expect(hex(mcp({ metadata: { ...metadata, other: 2 }, bound }))).toBe(hex(mcp({ metadata, bound })));
  });

  test('refuses bound metadata that is not JSON', () => {
    expect(mcp({ metadata: { a: () => 1 }, bound: ['a'] })).toBeNull();
    expect(
      mcp({ metadata: Object.defineProperty({}, 'a', { get: () => 1, enumerable: true }), bound: ['a'] }),
    ).toBeNull();
  });

  test.each([
    'mcp',
    '/mcp',
    '//api.example.com/mcp',
    'https://',
    'https://a.example/#b',
    'https://a.example/é',
    'https://a.example/a b',
    'https://a.example/%zz',
    'https://user@a.example/mcp',
    'https://user:secret@a.example/mcp',
    'https://:secret@a.example/mcp',
    'https://@a.example/mcp',
    'wss://user@a.example',
    'https:user@a.example',
    'https::secret@a.example',
    'https:///user@a.example/mcp',
    'example+x://user@a.example/mcp',
    'example://@a.example',
    '',
  ])('refuses the server %j', (server) => {
    expect(mcp({ server })).toBeNull();
  });

  test.each([
    'https://a.example',
    'http://127.0.0.1:1/mcp?x=1',
    'urn:example:mcp',
    'stdio:percall',
    // An at sign outside the authority names no user.
    'https://a.example/@user/mcp',
    'https://a.example?owner=user@b.example',
    'https://a.example/mcp?at=//user@b.example',
    'urn:example:user@mcp',
  ])('takes the server %s', (server) => {
    expect(parsed(mcp({ server })).server).toBe(server);
  });

  test('refuses a name that is no text, or empty', () => {
    expect(mcp({ name: 5 as unknown as string })).toBeNull();
    expect(mcp({ name: '\ud83d' })).toBeNull();
    expect(mcp({ name: '' })).toBeNull();
    expect(parsed(mcp({ name: ' ' })).name).toBe(' ');
  });

  test.each<[string, unknown]>([
    ['null', null],
    ['an array', []],
    ['text', 'account'],
    ['a number', 0],
    ['a boolean', false],
  ])('refuses metadata that is %s, whether names of it are bound or not', (_, metadata) => {
    expect(mcp({ metadata })).toBeNull();
    expect(mcp({ metadata, bound: ['account'] })).toBeNull();
  });

  test('takes metadata that was left out for none', () => {
    for (const bound of [[], ['account']]) {
      const none = hex(mcp({ metadata: {}, bound }));
      expect(none).not.toBeNull();
      expect([hex(mcp({ metadata: undefined, bound })), hex(mcp({ bound }))]).toEqual([none, none]);
    }
  });

  test.each([
    ['absent', {}, '310a43a0283ffe50393bf1daa3abb8b5cba4ad60c266aa9fb6d41a57b8cd5b85'],
    ['null', { account: null }, '88c4de6dedfe63dcef29a4b4a081a765b8153e45fc436f461dd4cd8b1a6ec94b'],
    ['a text', { account: 'acct_1' }, 'fd87b1c0ce931202901c02c531dc60453975185ffe41cb5cc112a525903ddbfe'],
  ])("has the hash of the scheme's vector for a bound member that is %s", (_, metadata, hash) => {
    expect(hex(mcp({ arguments: undefined, metadata, bound: ['account'] }))).toBe(hash);
  });
});

test('what may not be bound by the syntax cannot be bound', () => {
  expect(http({ bound: ['payment-signature'] })).toBeNull();
  expect(http({ bound: ['X-A'] })).toBeNull();
  expect(http({ bound: ['b', 'a'] })).toBeNull();
  expect(mcp({ bound: ['x402/payment'] })).toBeNull();
  expect(mcp({ bound: ['progressToken'] })).toBeNull();
  expect(mcp({ bound: [''] })).toBeNull();
});

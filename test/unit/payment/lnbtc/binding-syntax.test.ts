import { describe, expect, test } from 'vitest';
import { httpParams, mcpParams } from '../../../../src/payment/lightning/binding.ts';

describe('requestBindingParams', () => {
  const server = 'https://api.example.com/mcp';

  test.each([{ headers: [] }, { headers: ['accept', 'content-type', 'x-1'] }, { headers: ["!#$%&'*+-.^_`|~"] }])(
    'http:1 takes %j',
    (params) => {
      expect(httpParams(params)).toEqual(params);
    },
  );

  test.each<[string, unknown]>([
    ['nothing', undefined],
    ['null', null],
    ['an array', []],
    ['names alone', ['accept']],
    ['no member', {}],
    ['one member more', { headers: [], metadata: [] }],
    ['a member `__proto__`', JSON.parse('{"headers":[],"__proto__":[]}')],
    ['another member', { header: [] }],
    ['an inherited member', Object.create({ headers: [] })],
    ['no list', { headers: 'accept' }],
    ['an object for a list', { headers: { 0: 'accept', length: 1 } }],
    ['a number', { headers: [1] }],
    ['null for a name', { headers: [null] }],
    ['an upper-case name', { headers: ['Accept'] }],
    ['an empty name', { headers: [''] }],
    ['a space', { headers: ['x a'] }],
    ['a colon', { headers: [':path'] }],
    ['a letter past ASCII', { headers: ['é'] }],
    ['a line break', { headers: ['accept\n'] }],
    ['descending names', { headers: ['x-b', 'x-a'] }],
    ['a duplicate', { headers: ['accept', 'accept'] }],
    ['payment-signature', { headers: ['payment-signature'] }],
    ['payment-signature among others', { headers: ['accept', 'payment-signature', 'x-a'] }],
  ])('http:1 refuses %s', (_, params) => {
    expect(httpParams(params)).toBeNull();
  });

  test.each([
    { server, metadata: [] },
    { server, metadata: ['a', 'b/c'] },
  ])('mcp:1 takes %j', (params) => {
    expect(mcpParams(params)).toEqual(params);
  });

  test.each<[string, unknown]>([
    ['null', null],
    ['no server', { metadata: [] }],
    ['no metadata', { server }],
    ['one member more', { server, metadata: [], headers: [] }],
    ['both names in one', { 'server,metadata': [] }],
    ['a relative server', { server: '/mcp', metadata: [] }],
    ['a server that is no text', { server: 1, metadata: [] }],
    ['a list with a server in it', { server: [server], metadata: [] }],
    ['no list', { server, metadata: 'a' }],
    ['a name that is no text', { server, metadata: [{}] }],
    ['descending names', { server, metadata: ['b', 'a'] }],
    ['a duplicate', { server, metadata: ['a', 'a'] }],
    ['an empty name', { server, metadata: [''] }],
    ['an empty name before others', { server, metadata: ['', 'a'] }],
    ['a user in the server', { server: 'https://user@api.example.com/mcp', metadata: [] }],
    ['an empty user in the server', { server: 'https://@api.example.com/mcp', metadata: [] }],
    ['the payment', { server, metadata: ['x402/payment'] }],
    ['the progress token', { server, metadata: ['progressToken'] }],
  ])('mcp:1 refuses %s', (_, params) => {
    expect(mcpParams(params)).toBeNull();
  });
});

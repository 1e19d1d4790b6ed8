import { encodeAbiParameters, toEventSelector, toFunctionSelector } from 'viem';
import { describe, expect, test } from 'vitest';
import { decodeText, decodeUint, SELECTORS, TRANSFER_TOPIC } from '../../../src/chain/contracts.ts';

test.each(Object.entries(SELECTORS))('the selector of %s is that of its signature', (signature, selector) => {
  expect(toFunctionSelector(`function ${signature}`)).toBe(selector);
});

test('the Transfer topic is that of its signature', () => {
  expect(toEventSelector('event Transfer(address,address,uint256)')).toBe(TRANSFER_TOPIC);
});

const asString = (text: string) => encodeAbiParameters([{ type: 'string' }], [text]);
const asBytes32 = (text: string) => `0x${Buffer.from(text).toString('hex').padEnd(64, '0')}`;

describe('decodeText', () => {
  test.each([
    ['a string', asString('USD Coin'), 'USD Coin'],
    ['a string past one word', asString('x'.repeat(40)), 'x'.repeat(40)],
    ['legacy bytes32', asBytes32('MKR'), 'MKR'],
    ['bytes32 filled to the end', asBytes32('m'.repeat(32)), 'm'.repeat(32)],
    ['other letters', asString('Ξther ₿ 金'), 'Ξther ₿ 金'],
    ['a long one, cut by characters', asString('😀'.repeat(100)), '😀'.repeat(64)],
    ['control characters and direction overrides', asString('US\u0000D\u202eC\n\u200b '), 'USDC'],
    ['nothing', '0x', null],
    ['an empty string', asString(''), null],
    ['only invisible characters', asString('\u200b\u0007'), null],
    ['bytes32 of zeros', `0x${'0'.repeat(64)}`, null],
    ['no UTF-8', encodeAbiParameters([{ type: 'bytes' }], ['0xff00fe']), null],
    ['a word of no UTF-8', `0x${'ff'.repeat(32)}`, null],
    ['an offset past the end', `0x${'ff'.repeat(64)}`, null],
    ['a length past the end', `0x${'20'.padStart(64, '0')}${'ff'.padStart(64, '0')}`, null],
    ['four bytes', '0x06fdde03', null],
  ])('%s', (_what, returned, text) => {
    expect(decodeText(returned)).toBe(text);
  });
});

test('decodeUint takes the first whole word and nothing shorter', () => {
  expect(decodeUint(`0x${'6'.padStart(64, '0')}`)).toBe(6n);
  expect(decodeUint(`0x${'6'.padStart(64, '0')}${'1'.padStart(64, '0')}`)).toBe(6n);
  expect(decodeUint('0x06')).toBeNull();
  expect(decodeUint('0x')).toBeNull();
});

import { toFunctionSelector } from 'viem';
import { expect, test } from 'vitest';
import { methodOf } from '../../../src/chain/contracts.ts';

// Selectors as explorers and the projects' own documents print them, and not computed from our signatures.
test.each([
  ['0xa9059cbb', 'transfer', 'transfer(address,uint256)'],
  ['0x095ea7b3', 'approve', 'approve(address,uint256)'],
  [
    '0xe3ee160e',
    'transferWithAuthorization',
    'transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32)',
  ],
  ['0xd505accf', 'permit', 'permit(address,address,uint256,uint256,uint8,bytes32,bytes32)'],
  ['0x82ad56cb', 'aggregate3', 'aggregate3((address,bool,bytes)[])'],
  ['0xac9650d8', 'multicall', 'multicall(bytes[])'],
  ['0x5ae401dc', 'multicall', 'multicall(uint256,bytes[])'],
  ['0x38ed1739', 'swapExactTokensForTokens', 'swapExactTokensForTokens(uint256,uint256,address[],address,uint256)'],
  ['0x04e45aaf', 'exactInputSingle', 'exactInputSingle((address,address,uint24,address,uint256,uint256,uint160))'],
  [
    '0x414bf389',
    'exactInputSingle',
    'exactInputSingle((address,address,uint24,address,uint256,uint256,uint256,uint160))',
  ],
  ['0x5023b4df', 'exactOutputSingle', 'exactOutputSingle((address,address,uint24,address,uint256,uint256,uint160))'],
  ['0xb858183f', 'exactInput', 'exactInput((bytes,address,uint256,uint256))'],
  ['0x3593564c', 'execute', 'execute(bytes,bytes[],uint256)'],
  ['0x24856bc3', 'execute', 'execute(bytes,bytes[])'],
  ['0xdd46508f', 'modifyLiquidities', 'modifyLiquidities(bytes,uint256)'],
  ['0x57ecfd28', 'receiveMessage', 'receiveMessage(bytes,bytes)'],
  ['0x8e0250ee', 'depositForBurn', 'depositForBurn(uint256,uint32,bytes32,address,bytes32,uint256,uint32)'],
  ['0x87517c45', 'approve', 'approve(address,address,uint160,uint48)'],
  ['0x30f28b7a', 'permitTransferFrom', /^permitTransferFrom\(\(\(address/],
  ['0xd0e30db0', 'deposit', 'deposit()'],
  ['0x2e1a7d4d', 'withdraw', 'withdraw(uint256)'],
  ['0x47e7ef24', 'deposit', 'deposit(address,uint256)'],
  ['0x6a761202', 'execTransaction', /^execTransaction\(/],
  ['0xf2c298be', 'register', 'register(string)'],
  // x402's batch settlement, as its facts print them.
  ['0x140f1e75', 'deposit', /^deposit\(\(address/],
  ['0x29237b0c', 'claim', /^claim\(/],
  ['0xe43ce1f2', 'claimWithSignature', /^claimWithSignature\(/],
  ['0x9db32a8f', 'settle', 'settle(address,address)'],
  ['0xdce4bfae', 'refund', /^refund\(/],
  ['0xcf5cf3dc', 'initiateWithdraw', /^initiateWithdraw\(/],
  ['0xe88377b1', 'finalizeWithdraw', /^finalizeWithdraw\(/],
])('%s is %s', (selector, name, signature) => {
  const method = methodOf(`${selector.toUpperCase().replace('0X', '0x')}${'00'.repeat(32)}`);
  expect(method).toMatchObject({ selector, name });
  expect(method?.signature).toMatch(typeof signature === 'string' ? `${signature}` : signature);
  expect(toFunctionSelector(`function ${method?.signature}`)).toBe(selector);
});

test('a function that is not known keeps its selector, and less than four bytes name none', () => {
  expect(methodOf('0xdeadbeef')).toEqual({ selector: '0xdeadbeef', name: null, signature: null });
  expect(methodOf('0xdeadbe')).toBeNull();
  expect(methodOf('0x')).toBeNull();
});

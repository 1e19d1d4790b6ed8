import { expect, test } from 'vitest';
import { bindHttp, bindMcp } from '../../../../src/payment/lightning/binding.ts';
import { lightningRequirement, MAINNET } from '../../../../src/payment/lightning/terms.ts';

const SERVER = 'https://api.example.com/mcp';
const HASH = '03941bfedc6af8a09b2f459fe83470284a76a8c75801caa9e1487a9276a693f4';

function extraOf(binding: ReturnType<typeof bindMcp>) {
  if (!binding) throw new Error('no binding');
  const terms = { network: MAINNET.id, amountMsat: 1000n, payTo: '', invoice: '' };
  return lightningRequirement({ ...terms, binding }).extra;
}

test('the requirement of a tool call declares the profile, the server and the hash of the scheme’s own example', () => {
  const binding = bindMcp({ server: SERVER, name: 'get_article', arguments: { article: 'A' } });
  expect(extraOf(binding)).toMatchObject({
    requestHash: HASH,
    requestBindingProfile: 'mcp:1',
    requestBindingParams: { server: SERVER, metadata: [] },
  });
});

test('the requirement of an HTTP request declares its own', () => {
  const binding = bindHttp({ method: 'GET', url: 'https://api.example.com/article/A', body: new Uint8Array() });
  expect(extraOf(binding)).toMatchObject({
    requestHash: '0d6623f775e025501fa7f0a30b54da25aad62b6ccfe35c85da38016711e6c018',
    requestBindingProfile: 'http:1',
    requestBindingParams: { headers: [] },
  });
});

import { recoverTypedDataAddress } from 'viem';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { expect, test } from 'vitest';
import { bytesToHex } from '../../../../../src/lib/hex.ts';
import { keccak256 } from '../../../../../src/lib/secp256k1.ts';
import { createSellerProof } from '../../../../../src/payment/usdc/facilitator.ts';
import { createManualClock } from '../../../../support/manual-clock.ts';

const members = [
  'string purpose',
  'string method',
  'bytes32 bodyHash',
  'string network',
  'address payTo',
  'bytes32 nonce',
];
const fields = [...members, 'uint256 issuedAt', 'uint256 expiresAt'].map((member) => {
  const [type = '', name = ''] = member.split(' ');
  return { type, name };
});

test('a seller’s proof is its own signature over the request, good for four minutes, and another one each time', async () => {
  const key = generatePrivateKey();
  const { address } = privateKeyToAccount(key);
  const network = 'eip155:5042';
  const proof = createSellerProof(createManualClock(1_800_000_000_000), key, network);
  expect(proof.payTo).toBe(address.toLowerCase());
  const nonces = new Set<string>();
  // Both parities of a signature come up in as many, but for one run in some thousands.
  for (let at = 0; at < 12; at++) {
    const body = JSON.stringify({ at });
    const members = JSON.parse(Buffer.from(proof.header('settle', 'POST', body), 'base64url').toString('utf8'));
    const { signature, ...signed } = members;
    expect(signed).toMatchObject({ version: 1, network, issuedAt: 1_800_000_000, expiresAt: 1_800_000_240 });
    nonces.add(signed.nonce);
    const signer = await recoverTypedDataAddress({
      domain: { name: 'Circle Facilitator Seller Request', version: '1', chainId: 5042 },
      types: { SellerRequest: fields },
      primaryType: 'SellerRequest',
      message: { ...signed, purpose: 'settle', method: 'POST', bodyHash: bytesToHex(keccak256(Buffer.from(body))) },
      signature,
    });
    expect(signer).toBe(address);
  }
  expect(nonces.size).toBe(12);
});

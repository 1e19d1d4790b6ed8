import { authorizationTypes } from '@x402/evm';
import { getAddress, keccak256, stringToBytes } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { type EvmOffer, evmValidity } from './mpp-evm-offer.ts';
import { paymentCredential, receiptReference } from './payment-challenge.ts';
import { presentAuthorization } from './present-authorization.ts';

type Say = (line: string) => void;

/**
 * Signs for a checked offer and returns the answer's body. One authorization is signed, whatever the seller answers, and its nonce binds the challenge: so
 * no second payment can come of it. Throws with the seller's reason.
 */
export async function payMppEvm(url: URL, offer: EvmOffer, privateKey: `0x${string}`, say: Say): Promise<Buffer> {
  const account = privateKeyToAccount(privateKey);
  const { challenge, chainId, asset, payTo, amountUnits, domain } = offer;
  const { id = '', realm = '' } = challenge.echo;
  const validBefore = BigInt(evmValidity(offer, Math.floor(Date.now() / 1000)));
  const nonce = keccak256(stringToBytes(id + realm));
  const message = {
    from: account.address,
    to: getAddress(payTo),
    value: amountUnits,
    validAfter: 0n,
    validBefore,
    nonce,
  };
  const signature = await account.signTypedData({
    domain: { ...domain, chainId, verifyingContract: asset },
    types: authorizationTypes,
    primaryType: 'TransferWithAuthorization',
    message,
  });
  const texts = { value: amountUnits.toString(), validAfter: '0', validBefore: validBefore.toString() };
  const payload = { type: 'authorization', ...message, ...texts, signature };
  const source = `did:pkh:eip155:${chainId}:${account.address}`;
  const headers = paymentCredential(challenge.echo, payload, source);
  const signed = { headers, amountUnits, nonce, validBefore: texts.validBefore, transactionIn: receiptReference };
  return presentAuthorization(url, signed, say);
}

import { getAddress, keccak256, stringToBytes } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import type { EvmOffer } from './mpp-evm-offer.ts';
import { reasonOf } from './pay-usdc.ts';
import { paymentCredential, receiptReference } from './payment-challenge.ts';
import { presentPayment } from './present-payment.ts';
import { printable } from './printable.ts';
import { formatUsdc } from './usdc.ts';

type Say = (line: string) => void;

/** In seconds. The seller can take an authorization until it ends, so one that would stay open for longer is not signed. */
const MAX_VALIDITY = 7 * 86_400;
/** In seconds: MPP's default where the challenge names no expiry. */
const DEFAULT_VALIDITY = 300;

const TYPES = {
  TransferWithAuthorization: [
    { name: 'from', type: 'address' },
    { name: 'to', type: 'address' },
    { name: 'value', type: 'uint256' },
    { name: 'validAfter', type: 'uint256' },
    { name: 'validBefore', type: 'uint256' },
    { name: 'nonce', type: 'bytes32' },
  ],
} as const;

/** When an authorization for this offer ends, in Unix seconds. Throws when the offer has expired, or stays open too long. */
export function evmValidity({ challenge: { expiresAt } }: EvmOffer, now: number): number {
  if (expiresAt === null) return now + DEFAULT_VALIDITY;
  if (expiresAt <= now) throw new Error(`the offer expired ${now - expiresAt} s ago; nothing was signed`);
  if (expiresAt <= now + MAX_VALIDITY) return expiresAt;
  throw new Error('the authorization would stay open for more than 7 days; nothing was signed');
}

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
    ...{ types: TYPES, primaryType: 'TransferWithAuthorization', message },
  });
  const texts = { value: amountUnits.toString(), validAfter: '0', validBefore: validBefore.toString() };
  const payload = { type: 'authorization', ...message, ...texts, signature };
  const header = paymentCredential(challenge.echo, payload, `did:pkh:eip155:${chainId}:${account.address}`);
  const open = `whether it is charged is open until ${validBefore} (Unix seconds), its nonce is ${nonce}`;
  const answer = await presentPayment(url, header, say).catch((cause: unknown) => {
    throw new Error(`no answer; ${open}`, { cause });
  });
  if (!answer.ok) {
    const failure = `status ${answer.status}: ${printable(await reasonOf(answer, null))}`;
    throw new Error([409, 503].includes(answer.status) ? `${failure}; ${open}` : failure);
  }
  const body = Buffer.from(await answer.arrayBuffer());
  const reference = receiptReference(answer.headers);
  if (reference !== null) say(`paid:    ${formatUsdc(amountUnits)}, transaction ${printable(reference)}`);
  else say(`paid:    ${formatUsdc(amountUnits)} was authorized, but the answer came without a receipt`);
  return body;
}

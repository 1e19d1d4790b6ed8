import { encodeFunctionData, parseAbi } from 'viem';
import type { EmbeddedNetwork } from '../../../dev/network.ts';
import { bytesToHex, hexToBytes } from '../../../src/lib/hex.ts';
import { signRecoverable } from '../../../src/lib/secp256k1.ts';
import { createWallet } from '../../../src/payment/relayer/transactions.ts';
import type { Authorization } from '../../../src/payment/settler.ts';
import {
  addressWord,
  domainSeparator,
  transferCalldata,
  typedDigest,
  typeHash,
} from '../../../src/payment/usdc/token.ts';
import { newKey } from './payments.ts';

/** A third party with gas, who can send any transaction. */
export async function newOutsider(network: EmbeddedNetwork) {
  const { privateKey, address } = newKey();
  await network.fundNative(address, 10n ** 19n);
  const wallet = createWallet(bytesToHex(privateKey), network.chainId);
  let nonce = 0;

  /** Sends calldata, to the USDC contract unless another one is named, and waits until it is mined; returns the hash. */
  async function send(data: `0x${string}`, to: `0x${string}` = network.usdc): Promise<`0x${string}`> {
    const fees = { maxFeePerGas: 100n * 10n ** 9n, maxPriorityFeePerGas: 10n ** 9n };
    const { raw, hash } = wallet.sign({ to, data, gas: 300_000n, nonce: nonce++, ...fees });
    await network.rpc('eth_sendRawTransaction', [raw]);
    for (let tries = 0; tries < 1000; tries++) {
      if (await network.rpc('eth_getTransactionReceipt', [hash])) return hash;
      await new Promise((next) => setTimeout(next, 50));
    }
    throw new Error('the outsider’s transaction was not mined');
  }

  return { address, send, submit: (authorization: Authorization) => send(transferCalldata(authorization)) };
}

/** Calldata with which a payer cancels its authorization. */
export function cancelCalldata(
  network: EmbeddedNetwork,
  privateKey: Uint8Array,
  { from, nonce }: Authorization,
): `0x${string}` {
  const abi = parseAbi(['function cancelAuthorization(address authorizer, bytes32 nonce, bytes signature)']);
  const struct = [typeHash('CancelAuthorization(address authorizer,bytes32 nonce)'), addressWord(from), nonce];
  const separator = domainSeparator('USDC', '2', network.chainId, hexToBytes(network.usdc));
  const signature = bytesToHex(signRecoverable(typedDigest(separator, struct), privateKey));
  return encodeFunctionData({
    abi,
    functionName: 'cancelAuthorization',
    args: [bytesToHex(from), bytesToHex(nonce), signature],
  });
}

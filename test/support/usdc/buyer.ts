import type { EmbeddedNetwork } from '../../../dev/network.ts';
import { bytesToHex } from '../../../src/lib/hex.ts';
import type { Authorization } from '../../../src/payment/settler.ts';
import { type Answer, call } from '../service/service.ts';
import { headerOf, newKey, payloadOf, type Requirement, requirementOf, signAuthorization } from './payments.ts';

/** A payment ready to be presented, with its parts. */
export interface Payment {
  authorization: Authorization;
  requirement: Requirement;
  /** The value of the header field that presents it. */
  header: string;
  /** The field, where it is another than PAYMENT-SIGNATURE. */
  field?: 'payment-signature' | 'authorization';
}

/** A buyer with a new key and some USDC. It reads a 402 and signs the payment that the 402 asks for. */
export async function newBuyer(network: EmbeddedNetwork, units = 1_000_000n) {
  const { privateKey, address } = newKey();
  if (units > 0n) await network.fundUsdc(address, units);
  return {
    address,
    privateKey,
    sign: async (
      origin: string,
      path: string,
      overrides?: Parameters<typeof signAuthorization>[2],
    ): Promise<Payment> => {
      const challenge = await call(origin, path);
      const requirement = requirementOf(challenge.headers);
      const authorization = signAuthorization(privateKey, requirement, overrides);
      return { authorization, requirement, header: headerOf(payloadOf(authorization, requirement)) };
    },
  };
}

/** Presents a payment. */
export function present(
  origin: string,
  path: string,
  { header, field = 'payment-signature' }: Pick<Payment, 'header' | 'field'>,
  from?: string,
): Promise<Answer> {
  return call(origin, path, { headers: { [field]: header }, ...(from && { from }) });
}

/** The decoded PAYMENT-REQUIRED or PAYMENT-RESPONSE of an answer. */
export function decoded(answer: Answer, name: 'payment-required' | 'payment-response'): Record<string, unknown> {
  return JSON.parse(Buffer.from(String(answer.headers[name]), 'base64').toString('utf8'));
}

/** The status of a refusal, and the reason that its 402 names. */
export const errorOf = (answer: Answer) => [answer.status, decoded(answer, 'payment-required').error];

/** A USDC balance in base units at a block, read over JSON-RPC. */
export async function balanceOf(network: EmbeddedNetwork, address: string, block = 'latest'): Promise<bigint> {
  const data = `0x70a08231${address.slice(2).toLowerCase().padStart(64, '0')}`;
  return BigInt(await network.rpc<string>('eth_call', [{ to: network.usdc, data }, block]));
}

/**
 * Whether a transaction that is not mined yet carries the payment with this nonce. Transactions of other payments, such as repeated ones, may be pending
 * too, so their number shows nothing.
 */
export async function isPending(network: EmbeddedNetwork, nonce: string): Promise<boolean> {
  const { pending } = await network.rpc<{ pending: object }>('txpool_content', []);
  return JSON.stringify(pending).toLowerCase().includes(nonce.slice(2).toLowerCase());
}

/** The number of transfers of exactly this price from the payer to the seller on the chain. */
export async function transfersOf(network: EmbeddedNetwork, payment: Payment): Promise<number> {
  const topic = (address: string) => `0x${address.slice(2).toLowerCase().padStart(64, '0')}`;
  const transfer = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';
  const from = topic(bytesToHex(payment.authorization.from));
  const topics = [transfer, from, topic(payment.requirement.payTo)];
  const filter = { address: network.usdc, topics, fromBlock: '0x0', toBlock: 'latest' };
  const logs = await network.rpc<{ data: string }[]>('eth_getLogs', [filter]);
  return logs.filter(({ data }) => BigInt(data) === BigInt(payment.requirement.amount)).length;
}

/** Buys one call with a new buyer. Returns what the buyer paid and how often the chain moved the price. */
export async function buyOnce(network: EmbeddedNetwork, origin: string, path: string) {
  const buyer = await newBuyer(network);
  const payment = await buyer.sign(origin, path);
  const before = await balanceOf(network, buyer.address);
  const answer = await present(origin, path, payment);
  const paid = before - (await balanceOf(network, buyer.address));
  return { answer, paid, transfers: await transfersOf(network, payment), body: JSON.parse(answer.body) };
}

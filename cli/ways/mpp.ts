import { z } from 'zod';
import { bytesToHex } from '../../src/lib/hex.ts';
import { keccak256 } from '../../src/lib/secp256k1.ts';
import { type PaymentChallenge, paymentCredential } from '../challenges.ts';
import { checksummed } from '../keys.ts';
import { usdcToken, VALIDITY_SECONDS } from '../money.ts';
import { type Authorization, chainIdOf, signAuthorization } from './exact.ts';
import { BadOffer, type Fault, type Offer, type Plan, type PlanFor } from './way.ts';

// MPP's method `evm`: an authorization of USDC whose nonce answers the challenge. So one challenge is paid once,
// whatever
// is signed for it. Its method `lightning` is an invoice, in l402.ts.

/** In seconds: MPP's default where the challenge names no expiry. */
const DEFAULT_VALIDITY_SECONDS = 300;

const address = z.string().regex(/^0x[0-9a-fA-F]{40}$/);
const requestSchema = z.looseObject({
  amount: z.string().regex(/^[1-9]\d{0,29}$/, 'its amount is no positive whole number'),
  currency: address,
  recipient: address,
  description: z.string().optional(),
  methodDetails: z.looseObject({
    chainId: z.int().positive(),
    // Without the list the seller takes raw transactions, which this buyer does not sign.
    credentialTypes: z
      .array(z.string(), 'it names no credential types')
      .refine((types) => types.includes('authorization'), {
        error: 'it does not take an authorization (EIP-3009)',
      }),
    decimals: z.literal(6, 'its asset has not 6 decimals').optional(),
    splits: z.undefined('it splits the amount').optional(),
  }),
});

/** What an authorization of USDC on a known chain pays. A fault where no challenge of the method can be paid. */
export function readMpp(challenges: readonly PaymentChallenge[]): readonly Offer[] | Fault | null {
  const asked = challenges.filter(({ method, intent }) => method === 'evm' && intent === 'charge').map(readOne);
  const offers = asked.filter((offer): offer is Offer => !('fault' in offer));
  if (offers.length > 0) return offers;
  return asked.find((offer): offer is Fault => 'fault' in offer) ?? null;
}

function readOne(challenge: PaymentChallenge): Offer | Fault {
  const read = requestSchema.safeParse(challenge.request);
  if (!read.success) return { fault: `a Payment challenge (evm) cannot be paid: ${read.error.issues[0]?.message}` };
  const { amount, currency, recipient, description, methodDetails } = read.data;
  const network = `eip155:${methodDetails.chainId}`;
  const token = usdcToken(network, currency);
  if (!token)
    return { fault: `a Payment challenge asks for ${currency} on ${network}, which is no USDC that is known here` };
  return {
    way: 'mpp',
    rail: 'usdc',
    protocol: 'mpp',
    amount: { units: BigInt(amount), msat: null },
    network,
    asset: currency,
    payTo: recipient,
    description: challenge.description ?? description ?? null,
    resource: null,
    namesSeller: true,
    terms: null,
    plan: (buyer) => {
      const domain = { ...token, chainId: chainIdOf(network), verifyingContract: currency };
      return planMpp(challenge, { domain, to: checksummed(recipient), value: amount }, buyer);
    },
  };
}

interface MppContent {
  readonly authorization: Authorization;
  readonly echo: Readonly<Record<string, string>>;
}

function planMpp(
  { echo, expiresAt }: PaymentChallenge,
  { domain, to, value }: { readonly domain: Authorization['domain']; readonly to: string; readonly value: string },
  { address: from, now }: PlanFor,
): Plan {
  if (expiresAt !== null && expiresAt <= now) throw new BadOffer(`the offer expired ${now - expiresAt} s ago`);
  const validBefore = expiresAt === null ? now + DEFAULT_VALIDITY_SECONDS : Math.min(expiresAt, now + VALIDITY_SECONDS);
  const { id = '', realm = '' } = echo;
  const nonce = bytesToHex(keccak256(Buffer.from(id + realm, 'utf8')));
  const payer = from ?? `0x${'0'.repeat(40)}`;
  const message = { from: payer, to, value, validAfter: '0', validBefore: String(validBefore), nonce };
  const content: MppContent = { authorization: { domain, message }, echo };
  return { reference: nonce, expiresAt: validBefore, channel: null, content };
}

/** The header that presents a payment by MPP's method `evm`. */
export async function signMpp(content: unknown, key: `0x${string}`): Promise<Record<string, string>> {
  const { authorization, echo } = content as MppContent;
  const signature = await signAuthorization(authorization, key);
  const { domain, message } = authorization;
  const source = `did:pkh:eip155:${domain.chainId}:${message.from}`;
  return paymentCredential(echo, { type: 'authorization', ...message, signature }, source);
}

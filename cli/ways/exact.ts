import { randomBytes } from 'node:crypto';
import { encodePaymentSignatureHeader } from '@x402/core/http';
import type { PaymentPayload, PaymentRequirements } from '@x402/core/types';
import { z } from 'zod';
import { bytesToHex } from '../../src/lib/hex.ts';
import { own } from '../../src/lib/untrusted.ts';
import { readChallenge } from '../challenges.ts';
import { checksummed } from '../keys.ts';
import { usdcToken, VALIDITY_SECONDS } from '../money.ts';
import type { Asked, Fault, Offer, Plan, PlanFor } from './way.ts';

// A plain transfer of USDC by authorization (x402's scheme `exact`, EIP-3009).
// 1. Pick the entry that is a transfer of a known USDC contract.
// 2. Plan the whole authorization, its nonce included, so that signing it twice gives one and the same payment.
// 3. Sign it. The seller gets its own entry back unchanged, because it compares that with its offer.

/** What an entry in USDC has, whatever its scheme. */
export const usdcEntry = {
  network: z.string().regex(/^eip155:\d{1,18}$/),
  asset: z.string().regex(/^0x[0-9a-fA-F]{40}$/),
  amount: z.string().regex(/^\d{1,30}$/),
  payTo: z.string().regex(/^0x[0-9a-fA-F]{40}$/),
  maxTimeoutSeconds: z.int().positive(),
};
export const tokenExtra = {
  name: z.string(),
  version: z.string(),
  assetTransferMethod: z.literal('eip3009').optional(),
};

const transferSchema = z.looseObject({
  ...usdcEntry,
  scheme: z.literal('exact'),
  // With a `verifyingContract` the signature would be made for that contract instead of the token.
  extra: z.looseObject({ ...tokenExtra, verifyingContract: z.undefined().optional() }),
});

/** An entry of a 402, and the challenge that it stands in. */
export interface Entry {
  readonly challenge: ReturnType<typeof readChallenge>;
  readonly requirement: PaymentRequirements;
}

/** Every entry of a PAYMENT-REQUIRED header that has a schema's form, in known USDC. Throws for no x402 challenge. */
export function entriesIn(header: string, schema: z.ZodType<{ network: string; asset: string }>): Entry[] {
  const challenge = readChallenge(header);
  return challenge.accepts.flatMap((entry) => {
    const parsed = schema.safeParse(entry);
    const isUsdc = parsed.success && usdcToken(parsed.data.network, parsed.data.asset) !== null;
    return isUsdc ? [{ challenge, requirement: entry as PaymentRequirements }] : [];
  });
}

/** The entries of a PAYMENT-REQUIRED header that are plain transfers of a known USDC. Throws for no x402 challenge. */
export const plainTransfers = (header: string): Entry[] => entriesIn(header, transferSchema);

/** The plain transfers that a 402 asks for. A fault when there is none, or it is no x402 challenge. */
export function readExact({ headers }: Asked): readonly Offer[] | Fault | null {
  const header = headers.get('payment-required');
  if (header === null) return null;
  const entries = plainTransfers(header);
  if (entries.length === 0)
    return {
      fault: 'nothing on offer is a plain USDC transfer (scheme exact, EIP-3009) on a chain whose USDC is known',
    };
  return entries.map((entry) => ({ ...offerOf(entry), way: 'exact', plan: (buyer) => planExact(entry, buyer) }));
}

/** What an entry in USDC says, without its way to be paid. */
export function offerOf({ challenge, requirement }: Entry): Omit<Offer, 'way' | 'plan'> {
  const { description, url } = challenge.resource;
  return {
    rail: 'usdc',
    protocol: 'x402',
    amount: { units: BigInt(requirement.amount), msat: null },
    network: requirement.network,
    asset: requirement.asset,
    payTo: requirement.payTo,
    description: typeof description === 'string' ? description : null,
    resource: url,
    namesSeller: true,
    terms: null,
  };
}

/** An authorization (EIP-3009) and the domain that it is signed in, as JSON. */
export interface Authorization {
  readonly domain: {
    readonly name: string;
    readonly version: string;
    readonly chainId: number;
    readonly verifyingContract: string;
  };
  readonly message: {
    readonly from: string;
    readonly to: string;
    readonly value: string;
    readonly validAfter: string;
    readonly validBefore: string;
    readonly nonce: string;
  };
}

/** An authorization of x402, and what goes back to the seller with it. */
export interface SignedEntry {
  readonly authorization: Authorization;
  readonly envelope: Omit<PaymentPayload, 'payload'>;
}

const NOBODY = `0x${'0'.repeat(40)}`;

function planExact(entry: Entry, { address, now }: PlanFor): Plan {
  const { network, asset, maxTimeoutSeconds } = entry.requirement;
  const validBefore = now + Math.min(maxTimeoutSeconds, VALIDITY_SECONDS);
  const token = usdcToken(network, asset);
  if (!token) throw new Error('the asset is no USDC that is known here');
  const domain = { ...token, chainId: chainIdOf(network), verifyingContract: asset };
  return planEntry(entry, { domain, from: address ?? NOBODY, validAfter: 0, validBefore });
}

/** A plan for an entry in a domain. */
export function planEntry(
  { challenge, requirement }: Entry,
  times: Pick<Authorization, 'domain'> & {
    readonly from: string;
    readonly validAfter: number;
    readonly validBefore: number;
  },
): Plan {
  const nonce = bytesToHex(randomBytes(32));
  const message = {
    from: times.from,
    to: checksummed(requirement.payTo),
    value: requirement.amount,
    validAfter: String(times.validAfter),
    validBefore: String(times.validBefore),
    nonce,
  };
  const { resource, extensions } = challenge as { resource: PaymentPayload['resource']; extensions?: object };
  const envelope = { x402Version: 2, accepted: requirement, resource, extensions: withIdentifier(extensions) };
  const content: SignedEntry = { authorization: { domain: times.domain, message }, envelope: envelope as never };
  return { reference: nonce, expiresAt: times.validBefore, channel: null, content };
}

export const chainIdOf = (network: string): number => Number(network.slice('eip155:'.length));

/** x402's extension by which a seller knows its buyer again, where the chain shows the payment to all. */
const IDENTIFIER = 'payment-identifier';

/** The extensions of the 402, which a client repeats, with an identifier of our own where one is asked for. */
function withIdentifier(extensions: object | undefined): object | undefined {
  const asked = own(extensions, IDENTIFIER);
  if (typeof asked !== 'object' || asked === null) return extensions;
  const info = own(asked, 'info');
  return {
    ...extensions,
    [IDENTIFIER]: { ...asked, info: { ...(info as object), id: randomBytes(24).toString('base64url') } },
  };
}

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

/** Signs an authorization. Equal content gives an equal signature. */
export async function signAuthorization(
  { domain, message }: Authorization,
  key: `0x${string}`,
): Promise<`0x${string}`> {
  // On demand, as it takes most of the start-up time.
  const { privateKeyToAccount } = await import('viem/accounts');
  const account = privateKeyToAccount(key);
  const { from, to, value, validAfter, validBefore, nonce } = message;
  if (from.toLowerCase() !== account.address.toLowerCase()) throw new Error('the key is of another wallet');
  return account.signTypedData({
    domain: { ...domain, verifyingContract: domain.verifyingContract as `0x${string}` },
    types: TYPES,
    primaryType: 'TransferWithAuthorization',
    message: {
      from: from as `0x${string}`,
      to: to.toLowerCase() as `0x${string}`,
      value: BigInt(value),
      validAfter: BigInt(validAfter),
      validBefore: BigInt(validBefore),
      nonce: nonce as `0x${string}`,
    },
  });
}

/** The header that presents an entry's payment. */
export async function signEntry(content: unknown, key: `0x${string}`): Promise<Record<string, string>> {
  const { authorization, envelope } = content as SignedEntry;
  const signature = await signAuthorization(authorization, key);
  const payload = { authorization: authorization.message, signature };
  return { 'PAYMENT-SIGNATURE': encodePaymentSignatureHeader({ ...envelope, payload } as PaymentPayload) };
}

import { chainTitle, type NamedChain } from '../lib/named-chain.ts';
import { PAYMENT, RAIL, RECEIPT } from './meta.ts';

/** The instructions that every client receives: of which chain the answers are, and how the tools are paid for. */
export const instructionsFor = (
  chain: NamedChain,
): string => `Data by the call. The chain of these tools is ${chainTitle(chain)}, and no other. Tools named free_… just answer; tools named paid_… cost what their description says, with no account and no key.

A paid call without a payment comes back with isError and, as structured content, x402's PaymentRequired. Pay one of its "accepts" and make
the same call again with the payment payload (an object, not base64) in _meta["${PAYMENT}"]; the receipt then stands in
_meta["${RECEIPT}"] of the result. The same payment and arguments get the same answer again for 15 minutes; a USDC payment from the
same address, or under the same payment-identifier.

USDC is offered unless _meta["${RAIL}"] is "lightning": then the answer is fetched first and "accepts" begins with a fresh BOLT11 invoice
that binds this tool and these arguments (profile mcp:1, no metadata bound). Bad arguments, failures and refused payments are never charged;
charged "unknown" means: make the same call with the same payment again.`;

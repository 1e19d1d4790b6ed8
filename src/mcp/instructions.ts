import { chainTitle, type NamedChain } from '../lib/named-chain.ts';
import { type Door, LIGHTNING_DOOR, MAIN_DOOR } from './door.ts';
import { PAYMENT, RAIL, RECEIPT } from './meta.ts';

/**
 * The instructions that every client receives: first for the model, which can set a tool's name and arguments alone, then for the program that calls for
 * it.
 */
export function instructionsFor(chain: NamedChain, publicOrigin: string, door: Door): string {
  const isLightning = door.rail === 'lightning';
  const [rail, other] = isLightning
    ? ['in bitcoin over Lightning', `${publicOrigin}${MAIN_DOOR.path} sells the same in USDC`]
    : ['in USDC over x402', `${publicOrigin}${LIGHTNING_DOOR.path} sells the same in bitcoin over Lightning`];
  return `Data by the call. The chain of these tools is ${chainTitle(chain)}, and no other. Tools named free_… just answer; tools named paid_… cost what their description says, with no account and no key.

No argument pays for a call: the program that runs these tools pays ${rail}, if it has a wallet. A paid call without a payment comes back with
isError and a sentence that names the price. If it stays so, the program cannot pay: tell the user what the call costs, or take a free_ tool.
Bad arguments, failures and refused payments are never charged. charged "unknown" means: make the same call again, unchanged.

For the program: the structured content of an unpaid call is x402's PaymentRequired. Pay one of its "accepts" and make the same call again with the
payment payload (an object, not base64) in _meta["${PAYMENT}"]; the receipt then stands in _meta["${RECEIPT}"] of the result.
The same payment and arguments get the same answer again for 15 minutes; a USDC payment from the same address, or under the same
payment-identifier. Over Lightning the answer is fetched first and "accepts" begins with a fresh BOLT11 invoice that binds this address, the tool and
its arguments (profile mcp:1, no metadata bound). ${other}; at this address a call asks for a rail by
name with _meta["${RAIL}"]. With ?schemas=full this address lists the schemas of the answers too.`;
}

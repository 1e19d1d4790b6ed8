import type { RefusalSentences } from '../refusal.ts';

/** A sentence for each reason of the scheme `exact` on EVM chains that this service gives. */
export const EVM_REFUSALS: RefusalSentences = {
  invalid_exact_evm_network_mismatch:
    'The payment is for another network. Sign for the network of an entry of accepts.',
  'No matching payment requirements':
    'The accepted terms are none of those that are offered. Send back one of the entries of accepts unchanged.',
  invalid_exact_evm_recipient_mismatch:
    'The authorization pays another recipient. Sign it with the entry’s payTo as its recipient.',
  invalid_exact_evm_payload_authorization_value_mismatch:
    'The authorization is for another amount. Sign it for exactly the amount of the entry.',
  invalid_exact_evm_payload_authorization_valid_after:
    'The authorization is not valid yet. Sign it with a validAfter in the past, such as 0.',
  invalid_exact_evm_payload_authorization_valid_before:
    'The authorization has expired, or is not valid for as long as the entry says. Sign a new one.',
  invalid_exact_evm_signature:
    'The signature is not the payer’s over this authorization. Sign with the key of `from`, in the EIP-712 domain of the entry: its extra.name, extra.version and asset, on its chain.',
  eip6492_factory_not_allowed:
    'The payer’s wallet is not deployed yet, and its signature cannot be checked. Deploy the wallet first, or pay from another one.',
  invalid_exact_evm_insufficient_balance:
    'The payer holds too little USDC for this call and its other open payments. Fund the wallet, or pay from another one.',
  invalid_exact_evm_nonce_already_used:
    'The nonce of this authorization is already used, or it was cancelled. Sign a new one with another nonce.',
  invalid_exact_evm_transaction_simulation_failed:
    'The payer’s account would not let this authorization move the money. Check the wallet, or pay from another one.',
  invalid_exact_evm_transaction_failed:
    'The settlement moved no money, but a third party may send the authorization until it expires. Present the same payment again before you sign another.',
};

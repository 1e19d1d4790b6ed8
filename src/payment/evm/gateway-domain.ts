/**
 * The EIP-712 domain of Circle's Gateway Wallet, without its chain and address. Payers sign for the wallet under this domain. Its name distinguishes
 * the Gateway's entries in `accepts` and in `/supported` from those of the token itself.
 */
export const GATEWAY_DOMAIN = { name: 'GatewayWalletBatched', version: '1' } as const;

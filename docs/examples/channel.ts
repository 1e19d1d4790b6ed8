import { x402Client } from '@x402/core/client';
import { toClientEvmSigner } from '@x402/evm';
import { BatchSettlementEvmScheme } from '@x402/evm/batch-settlement/client';
import { FileClientChannelStorage } from '@x402/evm/batch-settlement/client/file-storage';
import { wrapFetchWithPayment } from '@x402/fetch';
import { createPublicClient, http } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';

// Buys three calls over a payment channel, which it keeps in .percall/channels. docs/paying.md explains it.

const { BUYER_PRIVATE_KEY, RPC_URL, ORIGIN } = process.env;
if (!BUYER_PRIVATE_KEY || !RPC_URL || !ORIGIN) throw new Error('BUYER_PRIVATE_KEY, RPC_URL and ORIGIN must be set');

const network = 'eip155:5042';
const asset = '0x3600000000000000000000000000000000000000';
const account = privateKeyToAccount(BUYER_PRIVATE_KEY as `0x${string}`);
const signer = toClientEvmSigner(account, createPublicClient({ transport: http(RPC_URL) }));
const storage = new FileClientChannelStorage({ directory: '.percall/channels' });
const scheme = new BatchSettlementEvmScheme(signer, { storage, depositPolicy: { depositMultiplier: 200 } });
const allowedAssets = [{ network, asset, maxAmountPerPayment: '5000' } as const];
const client = new x402Client().register(network, scheme).setSpendControls({ allowedAssets });
const pay = wrapFetchWithPayment(fetch, client);
for (let call = 0; call < 3; call++) console.log((await pay(`${ORIGIN}/v1/paid/fees/estimate`)).status);

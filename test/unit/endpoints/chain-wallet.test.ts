import { describe, expect, test } from 'vitest';
import { chainWallet } from '../../../src/endpoints/chain-wallet.ts';
import { UpstreamFailed } from '../../../src/errors.ts';
import { RpcFault } from '../../support/chain/rpc-server.ts';
import { ALICE, address, run, TOKEN, USDC, useFixture } from './fixture.ts';

const given = useFixture();

describe('chain/wallet', () => {
  test('a wallet: both USDC balances exact, all read at one block', async () => {
    expect(await run(chainWallet, given().sources, { address: ALICE })).toEqual({
      address: ALICE,
      type: 'wallet',
      usdc: '1.234567',
      nativeUsdc: '1.234567890000000001',
      projectToken: null,
      transactionsSent: 7,
      codeBytes: 0,
      asOfBlock: 1000,
      source: given().source,
    });
    const pinned = (given().node.bodies as { params: unknown[] }[][]).filter(Array.isArray).flat();
    expect(pinned.map(({ params }) => params[1])).toEqual(['0x3e8', '0x3e8', '0x3e8', '0x3e8']);
  });

  test.each([
    ['contract', '0x6000', 2],
    ['wallet', `0xef0100${'ab'.repeat(20)}`, 23],
    ['contract', `0xef0100${'ab'.repeat(21)}`, 24],
  ])('%s with code %s', async (type, code, codeBytes) => {
    given().node.methods.eth_getCode = () => code;
    expect(await run(chainWallet, given().sources, { address: ALICE })).toMatchObject({ type, codeBytes });
  });

  test('the project token is null where it cannot be read', async () => {
    const configured = (projectToken: `0x${string}`) => ({ ...given().sources, projectToken });
    expect(await run(chainWallet, configured(TOKEN), { address: ALICE })).toMatchObject({
      projectToken: { address: TOKEN, symbol: 'TKN', balance: '0.5' },
    });
    expect(await run(chainWallet, configured(address('99')), { address: ALICE })).toMatchObject({
      projectToken: { address: address('99'), symbol: null, balance: null },
    });
  });

  test('without the USDC balance the call fails with 502', async () => {
    delete given().views[USDC];
    await expect(run(chainWallet, given().sources, { address: ALICE })).rejects.toBeInstanceOf(UpstreamFailed);
  });

  test('a provider that lacks the block causes 502, not an invented balance', async () => {
    given().node.methods.eth_getBalance = () => {
      throw new RpcFault(-32000, 'header not found');
    };
    await expect(run(chainWallet, given().sources, { address: ALICE })).rejects.toBeInstanceOf(UpstreamFailed);
  });
});

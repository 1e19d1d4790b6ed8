import { describe, expect, test } from 'vitest';
import { createOperationCosts } from '../../../src/collector/store/costs.ts';
import { fees } from '../../../src/endpoints/fees/fees.ts';
import { putBlocks } from '../../support/chain/chain-rows.ts';
import { HOUR, PROVENANCE, UNTIL, useCollected } from './collected-fixture.ts';
import { run } from './fixture.ts';

const given = useCollected();
const GWEI = 1_000_000_000;

describe('fees', () => {
  test('base fee, the announced next one, floor and hours', async () => {
    const { db, sources } = given();
    putBlocks(db, [
      { number: 900, at: UNTIL - 3601, baseFee: 25 * GWEI, utilisation: 0.25 },
      { number: 901, at: UNTIL - 3600, baseFee: 20 * GWEI, utilisation: 0.75 },
      { number: 1000, at: UNTIL, baseFee: 20_130_000_001, nextBaseFee: 20_080_000_000, utilisation: 0.5 },
    ]);
    expect(await run(fees, sources)).toEqual({
      baseFee: { wei: '20130000001', gwei: '20.130000001', block: 1000 },
      nextBaseFee: { wei: '20080000000', gwei: '20.08', exact: true },
      floorGwei: '20',
      aboveFloorGwei: '0.130000001',
      aboveFloorPercent: '0.65',
      suggested: null,
      // 21,000 and 51,000 times 20130000001 wei, rounded up: 0.000422730000021 and 0.001026630000051.
      transferCostUsdc: { native: '0.000423', erc20: '0.001027', nativeWithTip: null, erc20WithTip: null },
      transferGas: { native: 21_000, erc20: 51_000, erc20Measured: false },
      hours: [
        {
          at: UNTIL - 1800 - HOUR,
          minGwei: '20',
          avgGwei: '22.5',
          maxGwei: '25',
          utilisationShare: 0.5,
          utilisation: 0.5,
        },
        {
          at: UNTIL - 1800,
          minGwei: '20.130000001',
          avgGwei: '20.130000001',
          maxGwei: '20.130000001',
          utilisationShare: 0.5,
          utilisation: 0.5,
        },
      ],
      detail: expect.any(Object),
      ...PROVENANCE,
    });
  });

  test('without an announcement EIP-1559 is applied, and the answer says so', async () => {
    const { db, sources } = given();
    putBlocks(db, [
      { number: 999, at: UNTIL - 1, baseFee: 700 },
      { number: 1000, at: UNTIL, baseFee: 800, utilisation: 21_000 / 30_000_000 },
    ]);
    // 800 - 800 x (15,000,000 - 21,000) / 15,000,000 / 8, rounded down in the node's order.
    expect((await run(fees, sources)).nextBaseFee).toEqual({ wei: '701', gwei: '0.000000701', exact: false });
  });

  test('the next base fee never lies below the floor: neither below the lowest of the day nor below the operator’s', async () => {
    const { db, sources } = given();
    putBlocks(db, [{ number: 1000, at: UNTIL, baseFee: 20 * GWEI, utilisation: 0 }]);
    expect(await run(fees, sources)).toMatchObject({ nextBaseFee: { gwei: '20', exact: false }, floorGwei: '20' });
    const collected = { ...sources.collected, floorWei: 19_000_000_000n };
    expect(await run(fees, { ...sources, collected })).toMatchObject({ nextBaseFee: { gwei: '19' }, floorGwei: '19' });
  });

  test('an announced fee below what was known of the floor lowers the floor', async () => {
    const { db, sources } = given();
    putBlocks(db, [{ number: 1000, at: UNTIL, baseFee: 20 * GWEI, nextBaseFee: 19 * GWEI }]);
    const collected = { ...sources.collected, floorWei: 20_000_000_000n };
    expect(await run(fees, { ...sources, collected })).toMatchObject({
      nextBaseFee: { gwei: '19', exact: true },
      floorGwei: '19',
    });
  });

  test('data from fee history alone gives the fee and no next one', async () => {
    const { db, sources } = given();
    putBlocks(db, [{ number: 1000, at: UNTIL, exact: 0 }]);
    expect(await run(fees, sources)).toMatchObject({ baseFee: { gwei: '20' }, nextBaseFee: null, floorGwei: '20' });
  });

  test('a token transfer costs the measured median', async () => {
    const { db, sources } = given();
    putBlocks(db, [{ number: 1000, at: UNTIL }]);
    const costs = [40_000, 62_000, 61_000].map((gasUsed) => ({
      kind: 'tokenTransfer' as const,
      at: UNTIL - 100,
      gasUsed,
      effectiveGasPrice: 1n,
      baseFee: 0n,
    }));
    createOperationCosts(db).record(costs);
    expect(await run(fees, sources)).toMatchObject({
      transferGas: { native: 21_000, erc20: 61_000, erc20Measured: true },
      transferCostUsdc: { erc20: '0.00122' },
    });
  });

  test('a wallet’s fields come from the tips of this hour and the one before, and transfers are priced with and without one', async () => {
    const { db, sources } = given();
    putBlocks(db, [{ number: 1000, at: UNTIL, baseFee: 20 * GWEI, nextBaseFee: 20_400_000_000 }]);
    const paid = (count: number, tip: bigint, at = UNTIL - 100) =>
      Array.from({ length: count }, () => ({
        kind: 'contractCall' as const,
        at,
        gasUsed: 1,
        baseFee: 20_000_000_000n,
        effectiveGasPrice: 20_000_000_000n + tip,
      }));
    // Ten tips: two of 0, six of 1 gwei, one of 3, one of 50. A tip of two hours ago is not measured.
    createOperationCosts(db).record([
      ...[...paid(2, 0n), ...paid(6, 10n ** 9n), ...paid(1, 3n * 10n ** 9n, UNTIL - 3600)],
      ...[...paid(1, 50n * 10n ** 9n), ...paid(9, 99n * 10n ** 9n, UNTIL - 2 * HOUR)],
    ]);
    const gwei = (value: string) => ({ wei: String(Math.round(Number(value) * 1e9)), gwei: value });
    expect(await run(fees, sources)).toMatchObject({
      suggested: {
        slow: { maxFeePerGas: gwei('25.5'), maxPriorityFeePerGas: gwei('0') },
        normal: { maxFeePerGas: gwei('31.6'), maxPriorityFeePerGas: gwei('1') },
        fast: { maxFeePerGas: gwei('43.8'), maxPriorityFeePerGas: gwei('3') },
        transactions: 10,
      },
      // 21,000 and 51,000 at 20 and at 21 gwei.
      transferCostUsdc: { native: '0.00042', erc20: '0.00102', nativeWithTip: '0.000441', erc20WithTip: '0.001071' },
      aboveFloorGwei: '0',
      aboveFloorPercent: '0',
    });
  });

  test('the operator’s floor takes precedence over the measured one', async () => {
    const { db, sources } = given();
    putBlocks(db, [{ number: 1000, at: UNTIL, baseFee: 21 * GWEI }]);
    const collected = { ...sources.collected, floorWei: 20_000_000_000n };
    expect((await run(fees, { ...sources, collected })).floorGwei).toBe('20');
    expect((await run(fees, sources)).floorGwei).toBe('21');
  });
});

import { describe, expect, test } from 'vitest';
import { hexToBytes } from '../../../../../src/lib/hex.ts';
import { channelEvents } from '../../../../../src/payment/channels/calldata.ts';
import { SETTLEMENT } from '../../../../../src/payment/channels/scheme.ts';
import { createContractStandIn } from '../../../../support/channels/contract-stand-in.ts';

const ID = `0x${'1d'.repeat(32)}`;
const SENDER = `0x${'5e'.repeat(20)}`;
const RECEIVER = `0x${'ab'.repeat(20)}`;
const TOKEN = `0x${'cd'.repeat(20)}`;
const channelId = hexToBytes(ID);
const contract = createContractStandIn();
const { event } = contract;
const read = (logs: ReturnType<typeof event>[], status = '0x1') => channelEvents({ status, logs });

describe('the contract’s events in a transaction', () => {
  test('are read in their order where they are claims, sweeps and refunds, each with what it says', () => {
    const logs = [
      event('Deposited', [ID, SENDER], [5n, 9n]),
      event('Claimed', [ID, SENDER], [3n, 4n]),
      event('Settled', [RECEIVER, TOKEN, SENDER], [7n]),
      event('Refunded', [ID, SENDER], [2n]),
      event('WithdrawInitiated', [ID], [6n, 1_800_000_000]),
      event('WithdrawFinalized', [ID, SENDER], [1n]),
    ];
    expect(read(logs)).toEqual([
      { kind: 'Claimed', channelId, amount: 3n, totalClaimed: 4n },
      { kind: 'Settled', receiver: hexToBytes(RECEIVER), token: hexToBytes(TOKEN), amount: 7n },
      { kind: 'Refunded', channelId, amount: 2n },
    ]);
  });

  const refunded = event('Refunded', [ID, SENDER], [2n]);
  test.each([
    ['of a transaction that reverted', [refunded], '0x0'],
    ['of another contract', [{ ...refunded, address: `0x${'99'.repeat(20)}` }], '0x1'],
    ['that the contract does not have', [{ ...refunded, topics: [ID, ID] }], '0x1'],
    ['whose data is cut off', [{ ...refunded, data: '0x02' }], '0x1'],
    ['whose topics are missing', [{ ...refunded, topics: refunded.topics.slice(0, 1) }], '0x1'],
  ])('leave out a log %s', (_, logs, status) => {
    expect(read(logs, status)).toEqual([]);
  });

  test('are read whatever the case in which a node writes the address', () => {
    expect(read([{ ...refunded, address: `0x${SETTLEMENT.slice(2).toUpperCase()}` }])).toHaveLength(1);
  });
});

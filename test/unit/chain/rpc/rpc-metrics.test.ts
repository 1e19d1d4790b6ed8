import { Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { countRpc } from '../../../../src/chain/rpc/client.ts';

// `increase(...) > 0` misses the first event of a counter that begins at 1.
test('contradictions are exported as 0 for each provider from the start, by its host alone', async () => {
  const registry = new Registry();
  const { onContradiction } = countRpc(registry, ['https://a.example/v2/KEY', 'https://user:KEY@b.example:8545']);
  const samples = async () => (await registry.metrics()).match(/^rpc_contradictions_total\{.*$/gm);
  const [a, b] = [
    'rpc_contradictions_total{provider="a.example"}',
    'rpc_contradictions_total{provider="b.example:8545"}',
  ];
  expect(await samples()).toEqual([`${a} 0`, `${b} 0`]);
  onContradiction('b.example:8545');
  expect(await samples()).toEqual([`${a} 0`, `${b} 1`]);
});

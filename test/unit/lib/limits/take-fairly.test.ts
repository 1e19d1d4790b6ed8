import { expect, test } from 'vitest';
import { takeFairly } from '../../../../src/lib/limits/shares.ts';

interface Waiting {
  readonly client: string;
  readonly at: number;
}

const taken = (clients: readonly string[], most: number): string[] =>
  takeFairly<Waiting>(
    clients.map((client, at) => ({ client, at })),
    most,
    ({ client }) => client,
  ).map(({ client, at }) => `${client}@${at}`);

test('a client’s only item is taken before the second item of a client with many', () => {
  const flood = Array<string>(50).fill('192.0.2.1');
  expect(taken([...flood, '198.51.100.1'], 2)).toEqual(['192.0.2.1@0', '198.51.100.1@50']);
});

test('all items are taken in the order of arrival when there are places for all', () => {
  expect(taken(['b', 'a', 'b'], 3)).toEqual(['b@0', 'a@1', 'b@2']);
});

test('rounds go on until no place is left, with clients in the order of arrival', () => {
  expect(taken(['a', 'a', 'a', 'b', 'b', 'c'], 5)).toEqual(['a@0', 'b@3', 'c@5', 'a@1', 'b@4']);
});

test('the networks of one IPv6 site share one turn', () => {
  const site = (network: string) => `2001:db8:1:${network}::/64`;
  const clients = [site('a'), site('b'), site('c'), '2001:db8:2:0::/64', site('a')];
  expect(taken(clients, 4)).toEqual([
    '2001:db8:1:a::/64@0',
    '2001:db8:2:0::/64@3',
    '2001:db8:1:b::/64@1',
    '2001:db8:1:c::/64@2',
  ]);
});

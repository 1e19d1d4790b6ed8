import { expect, test } from 'vitest';
import { loadConfig } from '../../../src/config.ts';
import { ENV } from '../../http/harness.ts';
import { configProblems } from '../../support/service/config-problems.ts';

const KEY = Buffer.alloc(32, 7).toString('base64');
const PROOF = `v=MCPv1; k=ed25519; p=${KEY}`;
const P384 = `v=MCPv1; k=ecdsap384; p=${Buffer.alloc(49, 2).toString('base64')}`;
const REGISTRY = 'eip155:8453:0x8004A169FB4a3325136EB29fA0ceB6D2e539a432';

test('the proof for the MCP registry is a line with a public key', () => {
  expect(loadConfig(ENV).agents).toEqual({ registryProof: null, registrations: [] });
  for (const proof of [PROOF, P384]) {
    expect(loadConfig({ ...ENV, MCP_REGISTRY_AUTH: proof }).agents.registryProof).toBe(proof);
  }
});

test.each([
  ['a private key as the tools print it', Buffer.alloc(32, 7).toString('hex')],
  ['the key alone', KEY],
  ['a key of another length', `v=MCPv1; k=ed25519; p=${Buffer.alloc(64, 7).toString('base64')}`],
  ['another line after it', `${PROOF}\nx-header: y`],
])('%s is no proof, and no error repeats it', (_case, MCP_REGISTRY_AUTH) => {
  const problems = configProblems({ ...ENV, MCP_REGISTRY_AUTH });
  expect(problems).toEqual([expect.stringMatching(/^MCP_REGISTRY_AUTH: /)]);
  expect(problems[0]).not.toContain(MCP_REGISTRY_AUTH);
});

test('registrations name a registry on a chain, and an agent', () => {
  const of = (text: string) => loadConfig({ ...ENV, AGENT_REGISTRATIONS: text }).agents.registrations;
  expect(of(`${REGISTRY}=22, ${REGISTRY.replace('8453', '1')}=0`)).toEqual([
    { agentId: 22, agentRegistry: REGISTRY },
    { agentId: 0, agentRegistry: REGISTRY.replace('8453', '1') },
  ]);
  for (const text of [REGISTRY, `${REGISTRY}=`, `${REGISTRY}=x`, `eip155:${REGISTRY}=1`, '8453=1']) {
    expect(configProblems({ ...ENV, AGENT_REGISTRATIONS: text }), text).toHaveLength(1);
  }
});

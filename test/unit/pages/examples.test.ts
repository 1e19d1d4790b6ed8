import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { payInTypeScript } from '../../../src/pages/examples.ts';

const README = readFileSync(join(import.meta.dirname, '../../../README.md'), 'utf8');

// biome-ignore lint/suspicious/noTemplateCurlyInString: as the README has it, where the shell sets the origin
const ORIGIN = '${process.env.ORIGIN}';

test('the README and the landing page show the same ten lines', () => {
  const asset = '0x3600000000000000000000000000000000000000';
  const lines = payInTypeScript({ origin: ORIGIN, network: 'eip155:5042', asset });
  expect(lines.trim().split('\n')).toHaveLength(10);
  expect(README).toContain(`\`\`\`ts\n${lines}\`\`\``);
});

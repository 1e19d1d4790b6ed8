import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { catalogue } from '../src/catalogue/catalogue.ts';
import { loadConfig } from '../src/config.ts';
import { createSkill } from '../src/http/documents.ts';
import { offersUnder } from '../src/wiring/surfaces.ts';
import { createServerJson } from './lib/server-json.ts';

// Writes the skill and the MCP registry's server.json to docs/agents/, for Arc and with placeholders for the origin. With --check it compares instead, and
// exits with 1 when they differ. With an origin it prints the server.json of the service there: `npm run -s agents -- https://api.example.com`.

const config = loadConfig({
  NETWORK: 'arc',
  PUBLIC_ORIGIN: 'https://api.example.com',
  SELLER_ADDRESS: '0x00000000000000000000000000000000000ca11e',
  RELAYER_PRIVATE_KEY: `0x${'1'.repeat(64)}`,
});
const offerOf = offersUnder(config);
const skill = createSkill({
  catalogue,
  chain: config.network,
  publicOrigin: '$ORIGIN',
  requirementOf: (endpoint) => offerOf(endpoint).requirement,
  lightning: true,
  mpp: false,
});

function serverJson(origin: string): string {
  const document = createServerJson(new URL(origin).origin, catalogue);
  return `${JSON.stringify(document, null, 2)}\n`;
}

const FILES = [
  ['docs/agents/percall/SKILL.md', skill],
  ['docs/agents/server.json', serverJson(config.publicOrigin)],
] as const;

const [asked] = process.argv.slice(2);
if (asked !== undefined && asked !== '--check') process.stdout.write(serverJson(asked));
else for (const [path, text] of FILES) keep(path, text);

function keep(path: string, text: string): void {
  const file = fileURLToPath(new URL(`../${path}`, import.meta.url));
  if (asked === undefined) {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
    console.log(`${path} is written`);
  } else if (committed(file) !== text) {
    console.error(`${path} is not what the catalogue declares; run \`npm run agents\` and commit the result`);
    process.exitCode = 1;
  }
}

function committed(file: string): string | null {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return null;
  }
}

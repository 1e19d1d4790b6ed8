import { catalogue } from '../src/catalogue/catalogue.ts';
import { loadConfig } from '../src/config.ts';
import { createSkill } from '../src/http/documents.ts';
import { offersUnder } from '../src/wiring/surfaces.ts';
import { EXAMPLE_ENVIRONMENT, keepGenerated } from './lib/generated.ts';
import { createServerJson } from './lib/server-json.ts';

// Writes the skill and the MCP registry's server.json to docs/agents/, for Arc and with placeholders for the origin. With --check it compares instead, and
// exits with 1 when they differ. With an origin it prints the server.json of the service there: `npm run -s agents -- https://api.example.com`.

const DECLARED = 'what the catalogue declares; run `npm run agents`';

const config = loadConfig(EXAMPLE_ENVIRONMENT);
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

const [asked] = process.argv.slice(2);
if (asked !== undefined && asked !== '--check') process.stdout.write(serverJson(asked));
else {
  keepGenerated('docs/agents/percall/SKILL.md', skill, DECLARED);
  keepGenerated('docs/agents/server.json', serverJson(config.publicOrigin), DECLARED);
}

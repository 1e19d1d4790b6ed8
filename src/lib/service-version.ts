import { readFileSync } from 'node:fs';

const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string;
};

/** The version of this service, from package.json. Outgoing requests and `initialize` of MCP name it. The interface's documents have one of their own. */
export const SERVICE_VERSION: string = manifest.version;

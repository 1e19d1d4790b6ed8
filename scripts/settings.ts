import { type Key, keysOf } from '../src/config/table.ts';
import { TABLES } from '../src/config.ts';
import { keepGenerated } from './lib/generated.ts';

// Writes .env.example and docs/configuration.md from the tables of the configuration. With --check it compares instead,
// and exits with 1 when they differ.

const WIDTH = 120;

const EXAMPLE = `\
# Every key that the service reads, with its default. Copy this file to .env, set what a seller sets, and start with
# \`npm start\`. It is written by \`npm run settings\`: change src/config/ instead.
# .env holds keys: \`chmod 600 .env\`, so that no other user of the machine reads them.
# An empty key counts as unset. A key of the environment takes precedence over .env. A key in _MS is in milliseconds.
# Without NETWORK, \`npm start\` runs an embedded network with play money (not under NODE_ENV=production).
`;
const AFTER_THE_FIRST = `
# Everything else has a working default. A key that turns something on may need others; the start names what is missing.
`;

const PAGE = `\
# Configuration

Every key that the service reads from the environment and from \`.env\`. [.env.example](../.env.example) has the same keys and sentences.
This page is written by \`npm run settings\` from the tables in \`src/config/\`. [operating.md](operating.md) says when you need which key.

- What a seller sets comes first. Everything else has a working default. A key that turns something on may need others.
- An empty key counts as unset. A key of the environment takes precedence over \`.env\`.
- A key that ends in \`_MS\` is in milliseconds, one in \`_SECONDS\` in seconds.
- The start names every key that is missing or wrong, all at once, and never repeats a value.
`;

/** What form a value has, in the words of the error about a wrong one; empty where any text will do. */
const formOf = ({ schema }: Key<unknown>): string => schema.safeParse('\0').error?.issues[0]?.message ?? '';

const tables = Object.values(TABLES);

function example(): string {
  const parts = tables.map((table, at) => {
    const heading = `# --- ${table.title} `.padEnd(WIDTH, '-');
    const keys = keysOf(table).map((key) => `${comment(key)}\n${key.name}=${key.fallback}\n`);
    return `\n${heading}\n\n${keys.join('')}${at === 0 ? AFTER_THE_FIRST : ''}`;
  });
  return EXAMPLE + parts.join('');
}

function comment(key: Key<unknown>): string {
  const form = formOf(key);
  const lines = ['#'];
  for (const word of `${key.sentence}${form === '' ? '' : ` Takes ${form}.`}`.split(' ')) {
    const line = `${lines.at(-1)} ${word}`;
    if (line.length <= WIDTH) lines[lines.length - 1] = line;
    else lines.push(`# ${word}`);
  }
  return lines.join('\n');
}

function page(): string {
  const parts = tables.map((table) => {
    const rows = keysOf(table).map((key) => `| ${[`\`${key.name}\``, ...cells(key)].join(' | ')} |`);
    const [heading, note = ''] = table.title.split(': ');
    const said = note && `${note.charAt(0).toUpperCase()}${note.slice(1)}.\n\n`;
    return `\n## ${heading}\n${said}| key | takes | default | |\n|---|---|---|---|\n${rows.join('\n')}\n`;
  });
  return PAGE + parts.join('');
}

function cells(key: Key<unknown>): string[] {
  const fallback = key.fallback === '' ? '' : `\`${key.fallback}\``;
  return [formOf(key), fallback, key.sentence].map((text) => text.replaceAll('|', '\\|'));
}

const DECLARED = 'what src/config/ declares; run `npm run settings`';
keepGenerated('.env.example', example(), DECLARED);
keepGenerated('docs/configuration.md', page(), DECLARED);

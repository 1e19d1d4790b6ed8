import { globSync, readdirSync } from 'node:fs';
import { posix } from 'node:path';
import ts from 'typescript';
import { describe, expect, test } from 'vitest';
import { parseSource, ROOT, readSources, type Source } from '../../support/sources.ts';

/** Far fewer than exist. It shows that the test looks in the right place. */
const MIN_FILES = 30;

/**
 * What the files under a path may import besides their own path. Paths are below src, and the longest match counts.
 * `x:types` allows only `import type`. `catalogue/:declarations` is the catalogue without the list, which imports every endpoint.
 */
const EVERYTHING_BELOW = [
  ...['routes/', 'pages/', 'mcp/', 'facilitator/', 'discovery/', 'payment/', 'catalogue/', 'endpoints/', 'collector/'],
  ...['selftest/', 'instances/', 'http/', 'chain/', 'upstream/', 'store/', 'lib/', 'errors.ts', 'config'],
];
const CONFIG_TYPES = ['config:types'];
/** The payment core: files directly below payment/. */
const CORE = ['payment/:files'];
/** What a rail is made of, whatever money it takes. */
const RAIL = [
  ...[...CORE, 'catalogue/:declarations', 'chain/', 'upstream/', 'store/ports/', 'lib/', 'errors.ts'],
  ...CONFIG_TYPES,
];
/** The Lightning scheme, without a node and without a sale. The facilitator uses it too. */
const KIT = [
  ...['payment/lightning/binding.ts', 'payment/lightning/bolt11.ts', 'payment/lightning/terms.ts'],
  ...['payment/lightning/proof.ts', 'lib/', 'errors.ts'],
];
const MAY_IMPORT: Record<string, readonly string[]> = {
  'server.ts': ['app.ts', 'wiring/', 'http/', 'lib/', 'errors.ts', 'config'],
  'app.ts': ['wiring/', ...EVERYTHING_BELOW],
  'wiring/': EVERYTHING_BELOW,
  // Here and below: the shape of the configuration, which is only data.
  'routes/': [
    'pages/',
    'catalogue/',
    ...CORE,
    'facilitator/',
    'discovery/',
    'http/',
    'lib/',
    'errors.ts',
    ...CONFIG_TYPES,
  ],
  'pages/': ['catalogue/', ...CORE, 'facilitator/', 'discovery/', 'http/', 'lib/', 'errors.ts'],
  'mcp/': ['catalogue/', ...CORE, 'facilitator/', 'discovery/', 'http/', 'lib/', 'errors.ts'],
  'facilitator/': [
    'catalogue/:declarations',
    'payment/lightning/proof.ts',
    'payment/lightning/terms.ts',
    'chain/',
    'upstream/',
    'store/ports/',
    'lib/',
    'errors.ts',
    ...CONFIG_TYPES,
  ],
  'discovery/': ['catalogue/:declarations', ...CORE, 'chain/', 'upstream/', 'store/ports/', 'lib/', 'errors.ts'],
  // The core imports no room of payment.
  'payment/': ['catalogue/:declarations', 'store/ports/', 'lib/', 'errors.ts', ...CONFIG_TYPES],
  ...eachIn('payment/protocols/', [...CORE, 'catalogue/:declarations', 'store/ports/', 'lib/', 'errors.ts']),
  'payment/usdc/': RAIL,
  'payment/relayer/': [
    ...['payment/settler.ts', 'payment/usdc/token.ts', 'payment/usdc/checks.ts', 'payment/usdc/evidence.ts'],
    ...['payment/usdc/payer-reads.ts', 'chain/', 'store/ports/', 'lib/', 'errors.ts'],
    ...CONFIG_TYPES,
  ],
  'payment/channels/': [...RAIL, 'payment/usdc/', 'payment/relayer/:types'],
  'payment/lightning/': [...RAIL, ...KIT],
  'payment/lightning/binding.ts': KIT,
  'payment/lightning/bolt11.ts': KIT,
  'payment/lightning/terms.ts': KIT,
  'payment/lightning/proof.ts': KIT,
  'instances/': [...CORE, 'store/ports/', 'lib/'],
  // The self-test is a buyer: it sees money through the chain alone, not through the payment code.
  'selftest/': [...['catalogue/:declarations', 'chain/', 'store/ports/', 'lib/', 'errors.ts'], ...CONFIG_TYPES],
  'catalogue/': ['lib/', 'errors.ts'],
  'catalogue/catalogue.ts': ['catalogue/', 'endpoints/', 'upstream/', 'lib/', 'errors.ts'],
  'endpoints/': [
    ...['catalogue/:declarations', 'chain/', 'upstream/', 'collector/store/', 'store/ports/', 'lib/', 'errors.ts'],
  ],
  'collector/': ['chain/', 'collector/store/', 'lib/', ...CONFIG_TYPES],
  'collector/store/': ['lib/', 'errors.ts'],
  'http/': ['lib/', 'errors.ts', 'catalogue/:declarations', ...CONFIG_TYPES],
  'chain/': ['lib/', 'errors.ts', ...CONFIG_TYPES],
  'upstream/': ['lib/', 'errors.ts', ...CONFIG_TYPES],
  // Subjects have one text for both databases, and name neither.
  'store/': ['store/ports/', 'store/db/port.ts', 'store/db/sql.ts', 'lib/', 'errors.ts'],
  // What serves one database alone, opens one, or reads a ledger whole.
  ...Object.fromEntries(
    ['backup', 'copy', 'instances', 'ledger-lock', 'minute-windows', 'open', 'open-postgres', 'reports'].map((file) => [
      `store/${file}.ts`,
      ['store/', 'lib/', 'errors.ts'],
    ]),
  ),
  'store/db/': ['store/ports/instances.ts', 'lib/', 'errors.ts'],
  'store/ports/': ['lib/', 'errors.ts'],
  'lib/': [],
  'errors.ts': [],
  config: ['lib/'],
};

/** The same row for each folder in a folder. So none of them may import another, and a new one needs no row of its own. */
function eachIn(folder: string, row: readonly string[]): Record<string, readonly string[]> {
  const found = readdirSync(`${ROOT}/src/${folder}`, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  return Object.fromEntries(found.map(({ name }) => [`${folder}${name}/`, row]));
}

/** Exceptions from a wider rule of the table. */
const MAY_NOT_IMPORT: Record<string, readonly string[]> = {
  // A service over a file loads no client of PostgreSQL.
  'store/open.ts': [
    'store/db/postgres',
    'store/db/connections.ts',
    'store/db/write-queue.ts',
    'store/open-postgres.ts',
  ],
};

/** Imports that break the table and still exist. The list may only shrink: an entry that matches nothing fails too. */
const BREACHES: readonly string[] = [];

const NOWHERE = /^$/;

/** Where a package may be imported. A package that is not named here may be imported anywhere. */
const PACKAGES: readonly { name: RegExp; values: RegExp; types?: RegExp }[] = [
  // Its root loads 180 modules of clients and actions that the service does not use: a fifth of its start. `viem/utils` has the encoders.
  { name: /^viem$/, values: NOWHERE, types: /^src\/(chain|payment|selftest)\// },
  { name: /^viem(\/|$)/, values: /^src\/(chain|payment|selftest)\// },
  {
    name: /^better-sqlite3$/,
    values: /^src\/(store\/|discovery\/full-text\.ts|collector\/store\/|lib\/sqlite-file\.ts)/,
  },
  { name: /^@x402\/fetch$/, values: /^src\/selftest\// },
  { name: /^undici$/, values: /^src\/(chain|upstream)\// },
  {
    name: /^(fastify|@fastify\/.*)$/,
    values: /^src\/(app\.ts|server\.ts|http\/|routes\/|pages\/|mcp\/|payment\/gate\.ts)/,
  },
];

interface Import {
  /** Null for a computed specifier, which no check could follow. */
  readonly specifier: string | null;
  readonly typesOnly: boolean;
  readonly dynamic: boolean;
}

const importsFound = new WeakMap<Source, readonly Import[]>();

/** Every import of a file: static, re-exported, type, dynamic, required. Each file is parsed once. */
function importsOf(source: Source): readonly Import[] {
  const found = importsFound.get(source) ?? findImports(source);
  importsFound.set(source, found);
  return found;
}

function findImports(source: Source): Import[] {
  const found: Import[] = [];
  const add = (node: ts.Node | undefined, typesOnly: boolean, dynamic = false) =>
    found.push({ specifier: node && ts.isStringLiteralLike(node) ? node.text : null, typesOnly, dynamic });
  const visit = (node: ts.Node): void => {
    if (ts.isImportDeclaration(node)) add(node.moduleSpecifier, importsTypesOnly(node.importClause));
    else if (ts.isExportDeclaration(node) && node.moduleSpecifier) add(node.moduleSpecifier, node.isTypeOnly);
    else if (ts.isImportTypeNode(node))
      add(ts.isLiteralTypeNode(node.argument) ? node.argument.literal : undefined, true);
    else if (ts.isCallExpression(node) && isLoad(node.expression)) add(node.arguments[0], false, true);
    ts.forEachChild(node, visit);
  };
  visit(parseSource(source));
  return found;
}

function importsTypesOnly(clause: ts.ImportClause | undefined): boolean {
  if (!clause) return false;
  if (clause.phaseModifier === ts.SyntaxKind.TypeKeyword) return true;
  const named = clause.namedBindings;
  if (clause.name || !named || !ts.isNamedImports(named)) return false;
  return named.elements.length > 0 && named.elements.every((element) => element.isTypeOnly);
}

function isLoad(callee: ts.Expression): boolean {
  return callee.kind === ts.SyntaxKind.ImportKeyword || (ts.isIdentifier(callee) && callee.text === 'require');
}

/** The entry of the table for a file: the longest match. */
function layerOf(path: string): string | undefined {
  const below = path.slice('src/'.length);
  return Object.keys(MAY_IMPORT)
    .filter((layer) => fits(layer, below))
    .sort((a, b) => b.length - a.length)[0];
}

/** `config` stands for config.ts and config/. */
function fits(layer: string, below: string): boolean {
  return layer === 'config' ? /^config(\.ts$|\/)/.test(below) : below.startsWith(layer);
}

/** Every import that breaks the tables above, as a sentence that names file and import. */
function violations(files: readonly Source[]): string[] {
  const known = new Set(files.map(({ path }) => path));
  return files.flatMap((file) => {
    const layer = layerOf(file.path);
    if (layer === undefined) return [`${file.path} belongs to no layer`];
    return importsOf(file).flatMap((entry) => {
      const fault = breachOf(file.path, layer, entry, known);
      return fault === null ? [] : [`${file.path}: ${fault}`];
    });
  });
}

/** The words that report a refused import. */
const REFUSED = 'may not import';

function breachOf(path: string, layer: string, entry: Import, known: ReadonlySet<string>): string | null {
  const { specifier, typesOnly } = entry;
  if (specifier === null) return 'a computed import';
  if (!specifier.startsWith('.')) return judgePackage(path, specifier, typesOnly);
  const target = posix.join(posix.dirname(path), specifier);
  // The local network does not ship: the process loads it when no chain is configured.
  if (target.startsWith('dev/') && path === 'src/server.ts' && entry.dynamic) return null;
  if (!target.startsWith('src/')) return `imports ${target}, which is not part of src`;
  if (!known.has(target)) return `imports ${target}, which is not there`;
  return layerOf(target) === layer || isAllowed(layer, target.slice('src/'.length), entry)
    ? null
    : `${REFUSED} ${target.slice('src/'.length)}`;
}

function isAllowed(layer: string, target: string, { typesOnly, dynamic }: Import): boolean {
  if (MAY_NOT_IMPORT[layer]?.some((prefix) => target.startsWith(prefix))) return false;
  return (MAY_IMPORT[layer] ?? []).some((rule) => {
    const [prefix = '', condition] = rule.split(':');
    if (!fits(prefix, target)) return false;
    if (condition === 'types') return typesOnly;
    if (condition === 'files') return !target.slice(prefix.length).includes('/');
    if (condition === 'dynamic') return dynamic;
    return condition !== 'declarations' || target !== 'catalogue/catalogue.ts';
  });
}

function judgePackage(path: string, specifier: string, typesOnly: boolean): string | null {
  const rule = PACKAGES.find(({ name }) => name.test(specifier));
  const allowed = !rule || rule.values.test(path) || (typesOnly && rule.types?.test(path));
  return allowed ? null : `imports ${specifier}`;
}

const sources = readSources('src/**/*.ts');

describe('the source', () => {
  test('was read completely', () => {
    const onDisk = globSync('src/**', { cwd: ROOT }).filter(
      // Scripts for browsers are not part of the process.
      (path) => /\.[cm]?[jt]sx?$/.test(path) && !path.replaceAll('\\', '/').startsWith('src/pages/assets/'),
    );
    expect(sources.map(({ path }) => path).sort()).toEqual(onDisk.map((path) => path.replaceAll('\\', '/')).sort());
    expect(sources.length).toBeGreaterThan(MIN_FILES);
    const imports = sources.flatMap(importsOf);
    expect(imports.length).toBeGreaterThan(sources.length);
  });

  test('keeps the import table, except for the listed breaches', () => {
    const breaches = violations(sources).map((fault) => fault.replace(`: ${REFUSED} `, ' > ').replace('src/', ''));
    expect([...new Set(breaches)].sort()).toEqual([...BREACHES].sort());
  });

  test('lends the local network two constants and no more', () => {
    const network = readSources('dev/**/*.ts');
    expect(network.length).toBeGreaterThan(10);
    const taken = network.flatMap((file) =>
      importsOf(file).flatMap(({ specifier }) => (specifier?.includes('/src/') ? [`${file.path}: ${specifier}`] : [])),
    );
    expect(taken).toEqual(['dev/lightning/lightning.ts: ../../src/payment/lightning/terms.ts']);
  });
});

/** What a folder or a file of the command may import besides its own folder. The longest match counts. */
const COMMAND_MAY_IMPORT: Record<string, readonly string[]> = {
  // The Lightning scheme, names of protocols, the exchanges' rate: nothing that holds the service's money or its books.
  'cli/': [...['cli/', 'src/lib/', 'src/errors.ts', 'src/payment/protocol.ts', 'src/upstream/rates/bitcoin.ts']],
  // The command's other words are the service's own programs.
  'cli/percall.ts': ['cli/', 'scripts/ledger.ts', 'scripts/backup.ts'],
  'cli/start.ts': ['scripts/lib/build/start-command.ts'],
  // Hosts buy through the port alone: neither the record nor a way to pay.
  'cli/mcp/': [...['cli/listing.ts', 'cli/money.ts', 'cli/port.ts', 'cli/printable.ts', 'cli/seller.ts', 'src/lib/']],
  // The record knows no seller and no way to pay.
  'cli/wallet/': ['cli/money.ts', 'cli/port.ts', 'src/lib/'],
  'cli/payers/': ['cli/printable.ts', 'src/lib/'],
  // A way to pay knows neither the record nor another folder's steps.
  'cli/ways/': [
    ...['cli/challenges.ts', 'cli/keys.ts', 'cli/money.ts', 'cli/port.ts', 'cli/printable.ts', 'cli/seller.ts'],
    ...['cli/payers/payer.ts', 'src/lib/', 'src/payment/lightning/binding.ts', 'src/payment/lightning/bolt11.ts'],
    ...['src/payment/lightning/proof.ts', 'src/payment/protocols/l402/l402.ts'],
  ],
};

/** Where the command imports packages with machine code, keys or money. */
const COMMAND_PACKAGES: readonly { name: RegExp; values: RegExp }[] = [
  { name: /^libsql$/, values: /^cli\/wallet\/record\.ts$/ },
  { name: /^(better-sqlite3|pg|fastify)$/, values: NOWHERE },
  { name: /^viem(\/|$)/, values: /^cli\/ways\// },
  { name: /^@getalby\/sdk/, values: /^cli\/payers\/nwc\.ts$/ },
  { name: /^@x402\//, values: /^cli\/(ways\/|challenges\.ts$|seller\.ts$)/ },
];

/** Every import of the command that breaks its tables. */
function commandFaults(files: readonly Source[]): string[] {
  return files.flatMap((file) => {
    const [row = ''] = Object.keys(COMMAND_MAY_IMPORT)
      .filter((layer) => file.path.startsWith(layer))
      .sort((a, b) => b.length - a.length);
    return importsOf(file).flatMap(({ specifier, typesOnly }) => {
      if (specifier === null) return [`${file.path}: a computed import`];
      if (!specifier.startsWith('.')) {
        const rule = COMMAND_PACKAGES.find(({ name }) => name.test(specifier));
        return !rule || rule.values.test(file.path) || typesOnly ? [] : [`${file.path}: imports ${specifier}`];
      }
      const target = posix.join(posix.dirname(file.path), specifier);
      const isOwn = posix.dirname(target) === posix.dirname(file.path) && row.endsWith('/');
      const allowed = isOwn || COMMAND_MAY_IMPORT[row]?.some((prefix) => target.startsWith(prefix));
      return allowed ? [] : [`${file.path}: ${REFUSED} ${target}`];
    });
  });
}

describe('the command', () => {
  const files = readSources('cli/**/*.ts');

  test('was read completely, and keeps its import table', () => {
    expect(files.map(({ path }) => path).sort()).toEqual(
      globSync('cli/**/*.ts', { cwd: ROOT })
        .map((path) => path.replaceAll('\\', '/'))
        .sort(),
    );
    expect(files.length).toBeGreaterThan(MIN_FILES);
    expect(commandFaults(files)).toEqual([]);
  });

  test.each([
    ['cli/pay.ts', "import { open } from '../src/store/open.ts';"],
    ['cli/pay.ts', "import { gate } from '../src/payment/gate.ts';"],
    ['cli/pay.ts', "import { loadConfig } from '../src/config.ts';"],
    ['cli/pay.ts', "import { main } from '../scripts/ledger.ts';"],
    ['cli/pay.ts', "import Database from 'libsql';"],
    ['cli/wallet/x.ts', "import { present } from '../seller.ts';"],
    ['cli/mcp/x.ts', "import { openRecord } from '../wallet/record.ts';"],
    ['cli/mcp/x.ts', "import { payCall } from '../pay.ts';"],
    ['cli/payers/x.ts', "import { openRecord } from '../wallet/record.ts';"],
    ['cli/ways/x.ts', "import { openRecord } from '../wallet/record.ts';"],
    ['cli/ways/x.ts', "import { rail } from '../../src/payment/lightning/rail.ts';"],
    ['cli/x.ts', "import { privateKeyToAccount } from 'viem/accounts';"],
    ['cli/x.ts', 'await import(name);'],
  ])('%s: refuses %s', (path, text) => {
    expect(commandFaults([{ path, text }])).toHaveLength(1);
  });
});

describe('the checker', () => {
  const others: Source[] = [
    'src/catalogue/catalogue.ts',
    'src/catalogue/endpoint.ts',
    'src/chain/rpc/client.ts',
    'src/config.ts',
    'src/wiring/service.ts',
    'src/endpoints/network.ts',
    'src/errors.ts',
    'src/lib/clock.ts',
    'src/payment/gate.ts',
    'src/wiring/rails.ts',
    'src/payment/protocols/x402/http.ts',
    'src/payment/lightning/rail.ts',
    'src/store/db/connections.ts',
    'src/store/db/sql.ts',
    'src/store/db/sqlite.ts',
    'src/store/open-postgres.ts',
  ].map((path) => ({ path, text: '' }));
  const found = (path: string, text: string) =>
    violations([...others.filter((other) => other.path !== path), { path, text }]);

  test.each([
    ['src/endpoints/x.ts', "import { gate } from '../payment/gate.ts';"],
    ['src/endpoints/x.ts', "import type { Gate } from '../payment/gate.ts';"],
    ['src/endpoints/x.ts', "export { gate } from '../payment/gate.ts';"],
    ['src/endpoints/x.ts', "export * from '../payment/gate.ts';"],
    ['src/endpoints/x.ts', "const gate = await import('../payment/gate.ts');"],
    ['src/endpoints/x.ts', 'const gate = await import(`../payment/gate.ts`);'],
    ['src/endpoints/x.ts', "let gate: import('../payment/gate.ts').Gate;"],
    ['src/endpoints/x.ts', "import '../payment/gate.ts';"],
    ['src/endpoints/x.ts', 'await import(name);'],
    ['src/endpoints/x.ts', "import { catalogue } from '../catalogue/catalogue.ts';"],
    ['src/endpoints/x.ts', "import { gone } from '../lib/gone.ts';"],
    ['src/endpoints/x.ts', "import fastify from 'fastify';"],
    ['src/catalogue/endpoint.ts', "import { network } from '../endpoints/network.ts';"],
    ['src/catalogue/catalogue.ts', "import { open } from '../store/db/sqlite.ts';"],
    ['src/payment/x.ts', "import type { FastifyRequest } from 'fastify';"],
    ['src/payment/x.ts', "import { loadConfig } from '../config.ts';"],
    ['src/chain/x.ts', "import { type Config, loadConfig } from '../config.ts';"],
    ['src/chain/x.ts', "import { open } from '../store/db/sqlite.ts';"],
    ['src/lib/x.ts', "import type { Deps } from '../wiring/service.ts';"],
    ['src/routes/x.ts', "import { parseAbi } from 'viem';"],
    ['src/payment/x.ts', "import { parseAbi } from 'viem';"],
    ['src/routes/x.ts', "import { keccak256 } from 'viem/utils';"],
    ['src/selftest/x.ts', "import { paysFor } from '../payment/gate.ts';"],
    ['src/selftest/x.ts', "import { catalogue } from '../catalogue/catalogue.ts';"],
    ['src/payment/x.ts', "import { x402Client } from '@x402/fetch';"],
    ['src/payment/x.ts', "import Database from 'better-sqlite3';"],
    ['src/wiring/routes.ts', "import fastify from 'fastify';"],
    ['src/app.ts', "import { start } from '../scripts/demo.ts';"],
    ['src/app.ts', "import { start } from '../dev/network.ts';"],
    ['src/server.ts', "import { start } from '../dev/network.ts';"],
    ['src/payment/x.ts', "import { open } from '../wiring/rails.ts';"],
    ['src/payment/x.ts', "import { read } from './lightning/rail.ts';"],
    ['src/payment/x.ts', "import { read } from './protocols/x402/http.ts';"],
    ['src/payment/usdc/x.ts', "import { read } from '../lightning/rail.ts';"],
    ['src/payment/usdc/x.ts', "import { read } from '../protocols/x402/http.ts';"],
    ['src/payment/protocols/x402/x.ts', "import { read } from '../../lightning/rail.ts';"],
    ['src/payment/lightning/proof.ts', "import { read } from './rail.ts';"],
    ['src/routes/x.ts', "import { read } from '../payment/lightning/rail.ts';"],
    ['src/mcp/x.ts', "import { open } from '../wiring/rails.ts';"],
    ['src/store/open.ts', "import { open } from './open-postgres.ts';"],
    ['src/store/x.ts', "import { open } from './db/sqlite.ts';"],
    ['src/store/ports/x.ts', "import { sql } from '../db/sql.ts';"],
    ['src/misplaced.ts', ''],
    ['src/nowhere/x.ts', ''],
  ])('%s: refuses %s', (path, text) => {
    expect(found(path, text)).toHaveLength(1);
  });

  test.each([
    ['src/endpoints/x.ts', "import { defineEndpoint } from '../catalogue/endpoint.ts'; import { z } from 'zod';"],
    ['src/catalogue/catalogue.ts', "import { network } from '../endpoints/network.ts';"],
    ['src/chain/x.ts', "import type { Config } from '../config.ts'; import { parseAbi } from 'viem/utils';"],
    ['src/chain/x.ts', "import { type Config } from '../config.ts';"],
    ['src/payment/gate.ts', "import type { FastifyRequest } from 'fastify';"],
    ['src/wiring/routes.ts', "import { open } from '../store/db/sqlite.ts';"],
    ['src/selftest/x.ts', "import type { Clock } from '../lib/clock.ts'; import { x402Client } from '@x402/fetch';"],
    ['src/server.ts', "const { start } = await import('../dev/network.ts');"],
    ['src/lib/x.ts', "import { clock } from './clock.ts'; import { createHash } from 'node:crypto';"],
  ])('%s: allows %s', (path, text) => {
    expect(found(path, text)).toEqual([]);
  });
});

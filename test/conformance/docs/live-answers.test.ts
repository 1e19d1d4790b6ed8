import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/sdk/validation/ajv';
import openapiTS, { astToString } from 'openapi-typescript';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { countRunningTime } from '../../support/running-time.ts';
import { gatherAnswers, type LiveAnswer } from '../../support/service/live-answers.ts';
import { BOUGHT, openLiveWorld } from '../../support/service/live-world.ts';
import { call } from '../../support/service/service.ts';

// What the running service answers is what /openapi.json says, for every route that a test can answer without a network.

interface Described {
  readonly paths: Record<string, Record<string, { responses: Record<string, { $ref?: string; content?: Content }> }>>;
  readonly components: { readonly responses: Record<string, { content: Content }> };
}
type Content = Record<string, { readonly schema: object }>;

const TSC = fileURLToPath(import.meta.resolve('typescript/bin/tsc'));
countRunningTime();

let world: Awaited<ReturnType<typeof openLiveWorld>>;
let document: Described;
let answers: LiveAnswer[];
beforeAll(async () => {
  world = await openLiveWorld();
  const { network, service } = world;
  document = JSON.parse((await call(service.origin, '/openapi.json')).body);
  answers = await gatherAnswers(network, service.origin, BOUGHT);
});
afterAll(() => world?.stop());

/** The schema that the document has for an answer; undefined where it has none for this status and type. */
function schemaOf({ path, method, status, type }: LiveAnswer): object | undefined {
  const response = document.paths[path]?.[method]?.responses[status];
  const name = response?.$ref?.split('/').at(-1);
  const { content } = (name === undefined ? response : document.components.responses[name]) ?? {};
  return content?.[type]?.schema;
}

test('every bought call is answered, and there are at least 50 answers, of three statuses and more', () => {
  const paths = BOUGHT.map((url) => url.split('?')[0] ?? '');
  const bought = answers.filter(({ path, status }) => paths.includes(path) && status === 200);
  expect(bought.map(({ path }) => path).sort()).toEqual(paths.sort());
  expect(answers.length).toBeGreaterThanOrEqual(50);
  expect(new Set(answers.map(({ status }) => status)).size).toBeGreaterThanOrEqual(3);
});

test('an answer with a member too many, and one with another type, would be found', () => {
  const ajv = new AjvJsonSchemaValidator();
  const { components } = document;
  const answer = answers.find(({ path }) => path === '/v1/paid/wiki/article')!;
  const fits = (body: object) => ajv.getValidator({ ...schemaOf(answer), components } as never)(body).valid;
  const body = answer.body as object;
  expect([fits(body), fits({ ...body, more: 1 }), fits({ ...body, characters: '35' })]).toEqual([true, false, false]);
});

test('each answer has the form that the OpenAPI document states for its route, status and type', () => {
  const ajv = new AjvJsonSchemaValidator();
  const { components } = document;
  // Most answers share a few schemas of errors: each is compiled once.
  const validators = new Map<object | undefined, ReturnType<typeof ajv.getValidator>>();
  for (const answer of answers) {
    const { path, status, type } = answer;
    const schema = schemaOf(answer);
    expect([path, status, type, schema]).toEqual([path, status, type, expect.any(Object)]);
    const fits = validators.get(schema) ?? ajv.getValidator({ ...schema, components } as never);
    validators.set(schema, fits);
    const { errorMessage } = fits(answer.body);
    expect([path, status, errorMessage]).toEqual([path, status, undefined]);
  }
});

/** The places of the faults that the compiler finds in the generated client and in files of answers that are assigned to its types. */
async function compile(files: Record<string, readonly LiveAnswer[]>): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'client-'));
  const linesOf = (given: readonly LiveAnswer[]) =>
    given.map(({ path, method, status, type, body }, index) => {
      const keys = [path, method, 'responses', status, 'content', type].map((key) => `[${JSON.stringify(key)}]`);
      return `export const answer${index}: paths${keys.join('')} = ${JSON.stringify(body)};\n`;
    });
  const compilerOptions = {
    noEmit: true,
    strict: true,
    exactOptionalPropertyTypes: true,
    allowImportingTsExtensions: true,
    // The compiler's own libraries are not under test.
    module: 'nodenext',
    moduleResolution: 'nodenext',
    types: [],
    lib: ['es2023'],
    skipLibCheck: true,
  };
  try {
    writeFileSync(join(folder, 'client.ts'), astToString(await openapiTS(document as never)));
    for (const [name, given] of Object.entries(files))
      writeFileSync(join(folder, name), `import type { paths } from './client.ts';\n${linesOf(given).join('')}`);
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions }));
    const { stdout } = spawnSync(process.execPath, [TSC, '-p', folder], { encoding: 'utf8' });
    // Every line that does not go on with a fault: also those without a place.
    const faults = stdout.split('\n').filter((line) => /^\S/.test(line));
    return faults.map((line) => basename(line.split(': ')[0] ?? line));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test('a client that is generated from the document compiles, and each answer fits its types, and a wrong one does not', async () => {
  const [first] = answers;
  const files = { 'answers.ts': answers, 'wrong.ts': [{ ...first!, body: {} }] };
  expect(await compile(files)).toEqual(['wrong.ts(2,14)']);
});

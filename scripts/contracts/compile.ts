import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import compiler from 'solc/package.json' with { type: 'json' };
import { ARTIFACTS_FILE, type Artifact } from '../../dev/contracts.ts';

interface Output {
  readonly errors?: readonly { severity: string; formattedMessage: string }[];
  readonly contracts: Record<
    string,
    Record<
      string,
      {
        abi: Artifact['abi'];
        evm: { bytecode: { object: string }; deployedBytecode: { object: string } };
      }
    >
  >;
}

/** Holds `digestOf` the committed artifacts. */
export const DIGEST_FILE = new URL('./artifacts.sha256', import.meta.url);

const FOLDER = new URL('.', import.meta.url);
const sourceFiles = (): string[] =>
  readdirSync(FOLDER)
    .filter((file) => file.endsWith('.sol'))
    .sort();

/** Everything that decides what is compiled: every `.sol` file of this folder, and the settings. */
const compilerInput = (files: readonly string[]): string =>
  JSON.stringify({
    language: 'Solidity',
    sources: Object.fromEntries(files.map((file) => [file, { content: readFileSync(new URL(file, FOLDER), 'utf8') }])),
    settings: {
      optimizer: { enabled: true, runs: 10_000 },
      evmVersion: 'cancun',
      metadata: { bytecodeHash: 'none', appendCBOR: false },
      outputSelection: { '*': { '*': ['abi', 'evm.bytecode.object', 'evm.deployedBytecode.object'] } },
    },
  });

/**
 * Identifies these artifacts together with what they were compiled from: the compiler's version, its input and this text. So a check needs no compiler,
 * which takes ten seconds of processor time.
 */
export function digestOf(artifacts: string): string {
  const parts = [compiler.version, compilerInput(sourceFiles()), artifacts];
  return `${createHash('sha256').update(JSON.stringify(parts)).digest('hex')}\n`;
}

/**
 * Compiles the sources and returns the text of the artifacts file. Any warning is an error.
 * Deterministic: the code holds no metadata hash, so another machine makes the same bytes.
 */
export async function compileContracts(): Promise<string> {
  const files = sourceFiles();
  const { default: solc } = await import('solc');
  const output: Output = JSON.parse(solc.compile(compilerInput(files)));
  const faults = (output.errors ?? []).filter((error) => error.severity !== 'info');
  if (faults.length > 0) throw new Error(faults.map((fault) => fault.formattedMessage).join('\n'));
  return `${JSON.stringify(Object.fromEntries(files.map((file) => artifactOf(output, file))), null, 1)}\n`;
}

/** The artifact of the contract that has the file's name. Interfaces have no code and are left out. */
function artifactOf(output: Output, file: string): [string, Artifact] {
  const name = file.slice(0, -'.sol'.length);
  const contract = output.contracts[file]?.[name];
  if (!contract) throw new Error(`${file} declares no contract ${name}`);
  const { bytecode, deployedBytecode } = contract.evm;
  return [name, { abi: contract.abi, bytecode: `0x${bytecode.object}`, runtime: `0x${deployedBytecode.object}` }];
}

if (import.meta.main) {
  const { values } = parseArgs({ options: { check: { type: 'boolean', default: false } } });
  const text = await compileContracts();
  if (!values.check) {
    writeFileSync(ARTIFACTS_FILE, text);
    writeFileSync(DIGEST_FILE, digestOf(text));
    console.log(`written: ${ARTIFACTS_FILE.pathname}`);
  } else if (readFileSync(ARTIFACTS_FILE, 'utf8') !== text) {
    console.error('dev/artifacts.json does not match the sources: run npm run contracts');
    process.exitCode = 1;
  }
}

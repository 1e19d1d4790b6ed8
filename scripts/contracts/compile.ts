import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import solc from 'solc';
import { ARTIFACTS_FILE, type Artifact } from '../../src/embedded/contracts/artifacts.ts';

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

/**
 * Compiles every `.sol` file of this folder and returns the text of the artifacts file. Any warning is an error.
 * Deterministic: the code holds no metadata hash, so another machine makes the same bytes.
 */
export function compileContracts(): string {
  const directory = new URL('.', import.meta.url);
  const files = readdirSync(directory)
    .filter((file) => file.endsWith('.sol'))
    .sort();
  const input = {
    language: 'Solidity',
    sources: Object.fromEntries(
      files.map((file) => [file, { content: readFileSync(new URL(file, directory), 'utf8') }]),
    ),
    settings: {
      optimizer: { enabled: true, runs: 10_000 },
      evmVersion: 'cancun',
      metadata: { bytecodeHash: 'none', appendCBOR: false },
      outputSelection: { '*': { '*': ['abi', 'evm.bytecode.object', 'evm.deployedBytecode.object'] } },
    },
  };
  const output: Output = JSON.parse(solc.compile(JSON.stringify(input)));
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
  const text = compileContracts();
  if (!values.check) {
    writeFileSync(ARTIFACTS_FILE, text);
    console.log(`written: ${ARTIFACTS_FILE.pathname}`);
  } else if (readFileSync(ARTIFACTS_FILE, 'utf8') !== text) {
    console.error('src/embedded/contracts/artifacts.json does not match the sources: run npm run contracts');
    process.exitCode = 1;
  }
}

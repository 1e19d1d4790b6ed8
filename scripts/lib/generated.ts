import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';

// What the programs that write committed documents share.

/** Mainnet with example addresses. Deployments differ only in the seller, the network and the server's address. */
export const EXAMPLE_ENVIRONMENT = {
  NETWORK: 'arc',
  PUBLIC_ORIGIN: 'https://api.example.com',
  SELLER_ADDRESS: '0x00000000000000000000000000000000000ca11e',
  RELAYER_PRIVATE_KEY: `0x${'1'.repeat(64)}`,
};

/**
 * Writes a document, whose path counts from the repository. With --check it compares instead, and the program exits with
 * 1 where the committed one is not `what`: "is not what the catalogue declares; run `npm run openapi`".
 */
export function keepGenerated(path: string, text: string, what: string): void {
  const file = fileURLToPath(new URL(`../../${path}`, import.meta.url));
  if (!process.argv.includes('--check')) {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
    console.log(`${path} is written`);
  } else if (committed(file) !== text) {
    console.error(`${path} is not ${what} and commit the result`);
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

import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import * as ldk from 'lightningdevkit';

let loaded: Promise<void> | null = null;

/** Loads LDK. The process has one WASM instance, so it is loaded once. */
export function loadLdk(): Promise<void> {
  loaded ??= load();
  return loaded;
}

async function load(): Promise<void> {
  const entry = createRequire(import.meta.url).resolve('lightningdevkit');
  const wasm = await readFile(join(dirname(entry), 'liblightningjs.wasm'));
  const { log } = console;
  // LDK prints a greeting on standard output, which the caller uses. The greeting is dropped; everything else is printed.
  console.log = (...args: unknown[]) => {
    if (!String(args[0]).startsWith('Loaded LDK')) log(...args);
  };
  try {
    await ldk.initializeWasmFromBinary(Uint8Array.from(wasm));
  } finally {
    console.log = log;
  }
}

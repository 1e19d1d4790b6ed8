import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import * as ldk from 'lightningdevkit';

let loaded: Promise<void> | null = null;

/** Makes LDK ready to be used. Its WASM instance is one for the whole process, so it is loaded once, whoever asks. */
export function loadLdk(): Promise<void> {
  loaded ??= load();
  return loaded;
}

async function load(): Promise<void> {
  const entry = createRequire(import.meta.url).resolve('lightningdevkit');
  const wasm = await readFile(join(dirname(entry), 'liblightningjs.wasm'));
  const { log } = console;
  // Standard output belongs to whoever runs us: LDK's one greeting is dropped, everything else passes.
  console.log = (...args: unknown[]) => {
    if (!String(args[0]).startsWith('Loaded LDK')) log(...args);
  };
  try {
    await ldk.initializeWasmFromBinary(Uint8Array.from(wasm));
  } finally {
    console.log = log;
  }
}

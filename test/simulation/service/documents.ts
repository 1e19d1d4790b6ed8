// biome-ignore lint/performance/noBarrelFile: everything else of the file is the real thing.
export * from '../../../src/http/documents.ts';

// In place of what a start would make anew each time: nothing of it is asked for here.

/** `llms.txt`. */
export const createLlmsText = (): string => '';

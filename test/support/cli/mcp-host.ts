import { PassThrough } from 'node:stream';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import {
  type CallToolResult,
  type ElicitRequest,
  ElicitRequestSchema,
  type ElicitResult,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { onTestFinished } from 'vitest';
import { createStdio } from '../../../cli/mcp/stdio.ts';
import { mcpCommand } from '../../../cli/mcp-command.ts';
import { textsOf } from '../service/mcp.ts';
import { KEY } from './open-buyer.ts';

type Question = ElicitRequest['params'];

interface HostOptions {
  readonly folder: string;
  readonly words: readonly string[];
  readonly env?: Record<string, string>;
  readonly delay?: () => Promise<void>;
  /** Answers for the person. Without it the host cannot ask. */
  readonly person?: (question: Question) => Promise<ElicitResult> | ElicitResult;
}

/** The official client as a host of `percall mcp`, which runs in this process over two pipes. */
export async function openHost({ folder, words, env = {}, person, delay }: HostOptions) {
  const [input, output] = [new PassThrough(), new PassThrough()];
  const said: string[] = [];
  const ended = mcpCommand(words, {
    env: { BUYER_PRIVATE_KEY: KEY, PERCALL_DIR: folder, ...env },
    folder,
    input,
    output,
    ...(delay && { delay }),
    say: (line) => void said.push(line),
    deliver: async () => {
      throw new Error('nothing is delivered beside the protocol');
    },
  });
  const client = new Client({ name: 'host', version: '1' }, { capabilities: person ? { elicitation: {} } : {} });
  const questions: Question[] = [];
  if (person)
    client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
      questions.push(params);
      return person(params);
    });
  let changes = 0;
  const changed = Promise.withResolvers<void>();
  client.setNotificationHandler(ToolListChangedNotificationSchema, () => {
    changes += 1;
    changed.resolve();
  });
  const faults: Error[] = [];
  client.onerror = (error) => faults.push(error);
  await client.connect(createStdio(output, input, (line) => faults.push(new Error(line))));
  onTestFinished(async () => {
    input.end();
    await ended;
  });
  return {
    client,
    input,
    output,
    ended,
    questions,
    faults,
    stderr: () => said.join('\n'),
    /** How often the host heard that the list has changed. */
    changes: () => changes,
    /** Resolves when it has heard so first. */
    changed: changed.promise,
    async call(name: string, given: Record<string, unknown> = {}, signal?: AbortSignal): Promise<CallToolResult> {
      const result = await client.callTool({ name, arguments: given }, undefined, { ...(signal && { signal }) });
      // Over a pipe within one process an answer is read before its write has ended.
      await new Promise((next) => setImmediate(next));
      return result as CallToolResult;
    },
  };
}

/** The words of a result after the mark, or of a failure. */
export const wordsOf = (result: CallToolResult): string =>
  textsOf(result)
    .slice(result.isError ? 0 : 1)
    .join('\n');

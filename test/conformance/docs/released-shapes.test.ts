import { expect, test } from 'vitest';
import { type ApiDocument, answerShapes, lostFrom, type Shape } from '../../../scripts/lib/answer-shapes.ts';
import { readText } from '../../support/documents.ts';

const released: Record<string, Shape> = JSON.parse(readText('test/conformance/docs/released-shapes.json'));
const document: ApiDocument = JSON.parse(readText('openapi/openapi.json'));

test('the answers only grow: no field of the released shapes is gone or has a type that it did not have', () => {
  expect(Object.keys(released).length).toBeGreaterThan(30);
  expect(released['GET /v1/fees']).toHaveProperty(['hours[].minGwei'], 'string');
  expect(lostFrom(released, answerShapes(document))).toEqual([]);
});

test('a field that is removed, retyped, made nullable or made optional is found, and one that is added is not', () => {
  const before = answerShapes(document);
  const fees = before['GET /v1/fees'] ?? {};
  const changed = (shape: Shape) => lostFrom(before, { ...before, 'GET /v1/fees': shape });
  const { 'baseFee.gwei': _, ...without } = fees;
  expect(changed(without)).toEqual(['GET /v1/fees: baseFee.gwei is gone']);
  expect(changed({ ...fees, 'baseFee.gwei': 'number' })).toEqual([
    'GET /v1/fees: baseFee.gwei was string, and can be number now',
  ]);
  expect(changed({ ...fees, 'baseFee.gwei': 'null string' })).toHaveLength(1);
  expect(changed({ ...fees, 'baseFee.gwei': 'optional string' })).toHaveLength(1);
  expect(changed({ ...fees, 'baseFee.more': 'string' })).toEqual([]);
  const { 'GET /v1/fees': __, ...others } = before;
  expect(lostFrom(before, others)).toEqual(['GET /v1/fees is gone']);
});

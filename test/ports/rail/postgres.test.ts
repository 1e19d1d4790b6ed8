import { railSuite } from './suite.ts';

railSuite('postgres');

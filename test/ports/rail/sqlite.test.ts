import { railSuite } from './suite.ts';

railSuite('sqlite');

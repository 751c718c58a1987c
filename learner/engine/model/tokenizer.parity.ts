/** Every real tokenizer against Python's: part of `npm run test:parity`. */
import { REAL_TOKENIZERS } from "../../../test/tokenizers.ts";
import { testTokenizer } from "./tokenizer.fixture.ts";

for (const name of REAL_TOKENIZERS) testTokenizer(name, { sweep: true });

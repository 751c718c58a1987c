/** The quick part of tokenizer.parity.ts. */
import { testTokenizer } from "./tokenizer.fixture.ts";

testTokenizer("qwen2.5", { sweep: false });

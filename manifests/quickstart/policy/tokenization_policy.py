from transformers import PreTrainedTokenizerFast


class PolicyTokenizer(PreTrainedTokenizerFast):
    """Reads tokenizer.json as it is."""

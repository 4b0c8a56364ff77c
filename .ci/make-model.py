"""Writes a tiny Llama-type model directory for a real vLLM on a CPU.

The weights are invented by vLLM itself (--load-format dummy). The tokenizer is
byte-level without merges, so one ASCII character is one token and a test knows
its prompt lengths exactly.
"""

import json
import pathlib
import sys

from tokenizers import Tokenizer, decoders, models, pre_tokenizers

out = pathlib.Path(sys.argv[1])
alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
vocab = {char: index for index, char in enumerate(alphabet)}
vocab["<s>"], vocab["</s>"] = len(vocab), len(vocab) + 1

tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=[]))
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tokenizer.decoder = decoders.ByteLevel()
tokenizer.add_special_tokens(["<s>", "</s>"])
tokenizer.save(str(out / "tokenizer.json"))

config = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 512,
    "num_hidden_layers": 8,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "intermediate_size": 1536,
    "vocab_size": 512,
    "max_position_embeddings": 4096,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "hidden_act": "silu",
    "tie_word_embeddings": False,
    "bos_token_id": vocab["<s>"],
    "eos_token_id": vocab["</s>"],
    "torch_dtype": "bfloat16",
}
(out / "config.json").write_text(json.dumps(config, indent=1))
(out / "tokenizer_config.json").write_text(
    json.dumps(
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": "<s>",
            "eos_token": "</s>",
            "model_max_length": 4096,
            "chat_template": "{% for m in messages %}{{ m['content'] }}{% endfor %}",
        },
        indent=1,
    )
)

"""Writes a small random Llama model as GGUF for llama.cpp's server on a CPU.

The vocabulary is SentencePiece's with its 256 byte tokens and nothing else of
use, so one byte of a prompt is one token. The weights are random, which costs
what trained ones cost: about 85 MB of Q8_0.
"""

import pathlib
import sys

import gguf
import numpy

LAYERS, WIDTH, HEADS, KV_HEADS, INNER, VOCABULARY, CONTEXT = 12, 768, 12, 4, 2048, 1024, 16384
HEAD = WIDTH // HEADS

out = pathlib.Path(sys.argv[1])
random = numpy.random.default_rng(1)
writer = gguf.GGUFWriter(out, "llama")

writer.add_name("random")
writer.add_block_count(LAYERS)
writer.add_context_length(CONTEXT)
writer.add_embedding_length(WIDTH)
writer.add_feed_forward_length(INNER)
writer.add_head_count(HEADS)
writer.add_head_count_kv(KV_HEADS)
writer.add_rope_dimension_count(HEAD)
writer.add_layer_norm_rms_eps(1e-5)
writer.add_vocab_size(VOCABULARY)
writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q8_0)

kinds = gguf.TokenType
tokens = [("<unk>", kinds.UNKNOWN), ("<s>", kinds.CONTROL), ("</s>", kinds.CONTROL)]
tokens += [(f"<0x{byte:02X}>", kinds.BYTE) for byte in range(256)]
# Words that only the model can say: a prompt is never merged into them, because
# there are no pieces of two characters on the way.
letters = "abcdefghijklmnopqrstuvwxyz"
words = [a + b + c for a in letters for b in letters for c in letters]
tokens += [("\u2581" + word, kinds.NORMAL) for word in words[: VOCABULARY - len(tokens)]]
writer.add_tokenizer_model("llama")
writer.add_token_list([text for text, _ in tokens])
writer.add_token_scores([0.0] * len(tokens))
writer.add_token_types([kind for _, kind in tokens])
writer.add_unk_token_id(0)
writer.add_bos_token_id(1)
writer.add_eos_token_id(2)
writer.add_add_space_prefix(False)
writer.add_chat_template("{% for m in messages %}{{ m['content'] }}{% endfor %}")


def matrix(name: str, rows: int, columns: int) -> None:
    weights = random.standard_normal((rows, columns), dtype=numpy.float32) / numpy.sqrt(columns)
    packed = gguf.quants.quantize(weights, gguf.GGMLQuantizationType.Q8_0)
    writer.add_tensor(name, packed, raw_dtype=gguf.GGMLQuantizationType.Q8_0)


def norm(name: str) -> None:
    writer.add_tensor(name, numpy.ones(WIDTH, dtype=numpy.float32))


matrix("token_embd.weight", VOCABULARY, WIDTH)
for layer in range(LAYERS):
    block = f"blk.{layer}."
    norm(block + "attn_norm.weight")
    matrix(block + "attn_q.weight", WIDTH, WIDTH)
    matrix(block + "attn_k.weight", KV_HEADS * HEAD, WIDTH)
    matrix(block + "attn_v.weight", KV_HEADS * HEAD, WIDTH)
    matrix(block + "attn_output.weight", WIDTH, WIDTH)
    norm(block + "ffn_norm.weight")
    matrix(block + "ffn_gate.weight", INNER, WIDTH)
    matrix(block + "ffn_up.weight", INNER, WIDTH)
    matrix(block + "ffn_down.weight", WIDTH, INNER)
norm("output_norm.weight")
matrix("output.weight", VOCABULARY, WIDTH)

writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()

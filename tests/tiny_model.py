"""A random Qwen3-architecture model of the pocket model's size, for tests that need weights but no skill.

Every part that reads a Hugging Face folder reads this one as it would a real one. The weights come from a fixed
seed and are scaled up, so that the next-token distribution is far from uniform and adapters visibly move it.
"""

from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

CHAT_TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
TOOLS_TEMPLATE = "{% for t in tools or [] %}[{{ t | tojson }}]\n{% endfor %}" + CHAT_TEMPLATE  # one that shows tools
# One that shows tools and calls as Hermes and Qwen do.
HERMES_TEMPLATE = (
    "{% if tools %}<|im_start|>system\nCall them with <tool_call></tool_call>:\n"
    "{% for t in tools %}{{ t | tojson }}\n{% endfor %}<|im_end|>\n{% endif %}"
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}{% for c in m['tool_calls'] or [] %}"
    '<tool_call>\n{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}\n</tool_call>'
    "{% endfor %}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
# The templates of Gemma 2 and of Mistral's first models, in what they refuse.
STRICT_TEMPLATE = (
    "{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
    "{% for m in messages %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate') }}{% endif %}"
    "<|im_start|>{{ 'model' if m['role'] == 'assistant' else m['role'] }}\n{{ m['content'] | trim }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>model\n{% endif %}"
)
CORPUS = [
    "The tiger is a large cat that lives in forests. It eats deer and can swim very well.",
    "Please answer in fewer words. Do not use emoji. Call me Ana. My dog is called Rex.",
    "What is the capital of France? The capital of France is Paris, on the river Seine.",
    "Bread is made of flour, water, salt and yeast, and it is baked in a hot oven.",
]


def save_tiny_model(
    path: Path, *, hidden_size: int = 128, num_layers: int = 4, seed: int = 0, chat_template: str = CHAT_TEMPLATE
) -> Path:
    """Writes model, configuration and tokenizer to `path` and returns it."""
    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = chat_template
    torch.manual_seed(seed)
    model = Qwen3ForCausalLM(_config(len(tokenizer), hidden_size, num_layers, tokenizer.eos_token_id))
    for parameter in model.parameters():
        if parameter.dim() == 2:
            parameter.data.mul_(4.0)
    model.float().save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path


def tiny_tokenizer() -> PreTrainedTokenizerFast:
    """Return a byte-level tokenizer of 512 tokens with a ChatML template."""
    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=512, special_tokens=special, initial_alphabet=alphabet)
    raw.train_from_iterator(CORPUS, trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=raw, eos_token="<|im_end|>", pad_token="<|endoftext|>")
    fast.chat_template = CHAT_TEMPLATE
    return fast


def _config(vocab_size: int, hidden_size: int, num_layers: int, eos_token_id: int) -> Qwen3Config:
    return Qwen3Config(
        vocab_size=vocab_size,
        hidden_size=hidden_size,
        intermediate_size=3 * hidden_size,
        num_hidden_layers=num_layers,
        num_attention_heads=hidden_size // 32,
        num_key_value_heads=max(1, hidden_size // 64),
        head_dim=32,
        max_position_embeddings=2048,
        tie_word_embeddings=True,
        eos_token_id=eos_token_id,
        dtype="float32",
    )

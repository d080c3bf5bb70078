"""The pocket model's tokenizer: a small byte-level BPE with a ChatML template, trained on the world's own text."""

import random
from pathlib import Path
from typing import TYPE_CHECKING

from engine.pocket.world import sample_conversation
from engine.prompts.turn_rules import NOTES_IN_SYSTEM

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

VOCABULARY_SIZE = 2048
END_OF_TURN = "<|im_end|>"
PADDING = "<|endoftext|>"
_START = "<|im_start|>"
# Words with their blank, one digit at a time, runs of signs: so numbers are compared and copied digit by digit.
_SPLIT = r" ?\p{L}+| ?\p{N}| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s"
CHAT_TEMPLATE = (
    "{%- for message in messages -%}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\n' }}{%- endif -%}"
)


def build(folder: Path, *, seed: int, num_conversations: int = 40_000) -> "PreTrainedTokenizerFast":
    """Train the tokenizer and save it to `folder`. Blocking: about half a minute."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(_SPLIT), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )  # fmt: skip
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY_SIZE,
        special_tokens=[PADDING, _START, END_OF_TURN],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    rng = random.Random(seed)
    texts = (t.begun + t.content for _ in range(num_conversations) for t in sample_conversation(rng).turns)
    tokenizer.train_from_iterator(texts, trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=END_OF_TURN,
        pad_token=PADDING,
        chat_template=CHAT_TEMPLATE,
        model_max_length=2048,
        clean_up_tokenization_spaces=False,
        **{NOTES_IN_SYSTEM: True},
    )
    fast.save_pretrained(folder)
    return fast

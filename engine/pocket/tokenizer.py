"""The pocket model's tokenizer: a small byte-level BPE with a ChatML template, trained on the world's own text."""

import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from engine.pocket.scene import FULL
from engine.pocket.world import sample_conversation
from engine.prompts.turn_rules import NOTES_IN_SYSTEM

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from tokenizers.pre_tokenizers import PreTokenizer
    from transformers import PreTrainedTokenizerFast

VOCABULARY_SIZE = 2048
CALL_MARKS = ("<tool_call>", "</tool_call>")
END_OF_TURN = "<|im_end|>"
PADDING = "<|endoftext|>"
_START = "<|im_start|>"
# Words with their blank, one digit at a time, runs of signs: so numbers are compared and copied digit by digit.
_WITH_BLANKS = r" ?\p{L}+| ?\p{N}| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s"
_WITHOUT_BLANKS = _WITH_BLANKS.replace(" ?", "")
_NUM_WITH_BLANK = 600  # words that are one token with their blank
_BLANK = "\u0120"  # as byte-level BPE writes it
# Tools stand at the end of the system message, each with the names of its arguments; calls are written as Hermes does.
CHAT_TEMPLATE = (
    "{%- macro shown() -%}{{ 'Tools: ' }}{%- for tool in tools -%}"
    "{{ tool.function.name }}({{ (tool.function.parameters.properties or {}) | join(', ') }})"
    "{{ '' if loop.last else ', ' }}{%- endfor -%}{%- endmacro -%}"
    "{%- if tools and (not messages or messages[0]['role'] != 'system') -%}"
    "{{ '<|im_start|>system\n' + shown() + '<|im_end|>\n' }}"
    "{%- endif -%}"
    "{%- for message in messages -%}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] }}"
    "{%- if tools and loop.first and message['role'] == 'system' -%}{{ '\n\n' + shown() }}{%- endif -%}"
    "{%- for call in message['tool_calls'] or [] -%}"
    "{{ '\n' if message['content'] or not loop.first else '' }}"
    '{{ \'<tool_call>\n{"name": "\' + call.function.name + \'", "arguments": \' }}'
    "{{ call.function.arguments if call.function.arguments is string else call.function.arguments | tojson }}"
    "{{ '}\n</tool_call>' }}"
    "{%- endfor -%}"
    "{{ '<|im_end|>\n' }}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\n' }}{%- endif -%}"
)


def build(folder: Path, *, seed: int, num_conversations: int = 40_000) -> "PreTrainedTokenizerFast":
    """Train the tokenizer and save it to `folder`. Blocking: about half a minute."""
    from tokenizers import AddedToken
    from transformers import PreTrainedTokenizerFast

    rng = random.Random(seed)
    mix = replace(FULL, hint_share=0.0)  # the words of hints are many and rare
    texts = [t.begun + t.content for _ in range(num_conversations) for t in sample_conversation(rng, mix).turns]
    tokenizer = _with_blanks(_trained(texts), texts)
    tokenizer.add_tokens([AddedToken(mark, special=False, normalized=False) for mark in CALL_MARKS])
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


def _trained(texts: Sequence[str]) -> "Tokenizer":
    """Train a byte-level BPE in which a blank is part of no word."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = _pieces(_WITHOUT_BLANKS)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY_SIZE - len(CALL_MARKS) - _NUM_WITH_BLANK,
        special_tokens=[PADDING, _START, END_OF_TURN],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def _with_blanks(tokenizer: "Tokenizer", texts: Sequence[str]) -> "Tokenizer":
    """Return the tokenizer with one more token for each of the most frequent words with the blank before it.

    Their merges come last, so that every other word is cut in the same pieces with a blank before it and without: what
    was read in a sentence can be copied to the beginning of a line token by token.
    """
    pieces = _pieces(_WITH_BLANKS)
    counts = Counter(piece for text in texts for piece, _ in pieces.pre_tokenize_str(text) if piece[0] == _BLANK)
    plan = json.loads(tokenizer.to_str())
    vocabulary, merges = plan["model"]["vocab"], plan["model"]["merges"]
    frequent = [piece for piece, _ in counts.most_common() if piece[1:] in vocabulary][:_NUM_WITH_BLANK]
    for piece in frequent:
        vocabulary[piece] = len(vocabulary)
        merges.append([_BLANK, piece[1:]])
    widened = type(tokenizer).from_str(json.dumps(plan))
    widened.pre_tokenizer = pieces
    return widened


def _pieces(split: str) -> "PreTokenizer":
    """Return what cuts a text into the pieces that no merge crosses."""
    from tokenizers import Regex, pre_tokenizers

    return pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(split), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )  # fmt: skip

"""The words that begin a rewritten answer, "say it like this: ...", in ten languages: one table, read from the start.

A phrase has to name the answer ("say it", not "answer like this: briefly", which is a wish), and something has to stand
behind the colon. Invariant: a phrase that is denied ("do not say it like this: ...") is no rewrite, so a "no" before it
counts only if a comma or the like ends it.
"""

import re
from typing import NamedTuple


class Wording(NamedTuple):
    """The words of one language, as regular expressions; a blank stands for any blanks."""

    no: str  # before the phrase, if a comma or the like follows
    please: str  # before or after the phrase
    phrase: str


WORDINGS = {
    "en": Wording(
        r"no|nope",
        r"no\b|nope\b|please|better",
        r"(?:say|write|put|phrase|answer|word) (?:it|that|this) (?:more )?(?:like (?:this|so)|this way)",
    ),
    "de": Wording(
        r"nein|nee|nö",
        r"bitte|besser|lieber",
        r"(?:(?:sag|schreib|formulier)(?:e|en sie)? (?:es|das|dies) (?:doch |bitte |lieber |besser |eher )*"
        r"(?:so|folgendermaßen|wie folgt|auf diese (?:art|weise))"
        r"|drück(?:e|en sie)? (?:es|das) (?:lieber |besser )?so aus)",
    ),
    "es": Wording(
        r"no",
        r"por favor|mejor",
        r"(?:d[ií]|d[ií]ga|dec[ií]|escr[ií]be|escr[ií]ba|escrib[ií]|pon|pone|p[oó]nga|expr[eé]s[ae]|form[uú]l[ae]"
        r"|red[aá]ct[ae])lo "
        r"(?:mejor |m[aá]s bien )?(?:as[ií]|de esta (?:manera|forma)|de este modo)",
    ),
    "fr": Wording(
        r"non",
        r"s['\u2019]il (?:te|vous) pla[iî]t|plut[oô]t|mieux",
        r"(?:dis|dites|[eé]cri(?:s|vez)|formulez?|exprimez?|r[eé]digez?|mets|mettez)(?:-| )(?:le|la|[cç]a|cela) "
        r"(?:plut[oô]t )?(?:comme (?:[cç]a|cela|ceci|suit)|ainsi|de cette (?:fa[cç]on|mani[eè]re))",
    ),
    "it": Wording(
        r"no",
        r"per favore|meglio|piuttosto",
        r"(?:(?:di|scrivi|riscrivi|metti|formula|esprimi)l+[oa]|lo (?:dica|scriva|metta|formuli|esprima)) "
        r"(?:piuttosto |invece )?(?:cos[iìí]['\u2019]?|in questo modo|in questa maniera)",
    ),
    "pt": Wording(
        r"n[aã]o",
        r"por favor|melhor",
        r"(?:diga|diz|escrev[ae]|reescrev[ae]|coloque|coloca|ponha|formul[ae])(?:-l?[oa])?(?: isso| isto)? "
        r"(?:assim|d[ea]st[ea] (?:forma|maneira|modo|jeito)|d[ea]ss[ea] (?:forma|maneira|modo|jeito))",
    ),
    "nl": Wording(
        r"nee",
        r"alsjeblieft|alstublieft|graag|liever|beter",
        r"(?:zeg|schrijf|formuleer|verwoord|zet)(?:t u)? (?:het|dat|dit) (?:liever |beter |maar )?"
        r"(?:zo|als volgt|op deze manier)",
    ),
    "ru": Wording(
        r"нет",
        r"пожалуйста|лучше",
        r"(?:скажи|напиши|сформулируй|перефразируй|вырази)(?:те)?(?: это)?(?: лучше)? "
        r"(?:вот )?(?:так|таким образом|следующим образом)",
    ),
    "zh": Wording(
        r"不|不对|不對|不是",
        r"请|請|最好",
        r"(?:你)?(?:应该|應該|可以)?(?:(?:这样|這樣|这么|這麼)(?:说|說|写|寫|讲|講|表达|表達)"
        r"|(?:把它)?(?:改成|改为|改為|换成|換成|写成|寫成|说成|說成)(?:这样|這樣))",
    ),
    "ja": Wording(
        r"いいえ|いや|違う|違います",
        r"できれば|むしろ",
        r"(?:こう|このように|こんな(?:ふう|風)に|こういう(?:ふう|風)に|次のように|以下のように)"
        r"(?:言って|いって|書いて|表現して|言い直して|書き直して)(?:ください|下さい|ほしい|欲しい|くれ|ね|よ)?",
    ),
}
_STOPS = r"[,.;:!\u3001\uff0c\u3002\uff01\uff1b]"


def _pattern(words: Wording) -> re.Pattern[str]:
    please = rf"(?:{words.please}){_STOPS}?\s*"
    whole = (
        rf"(?:(?:{words.no})\s*{_STOPS}+\s*)?(?:{please})*(?:{words.phrase})(?:{_STOPS}?\s*(?:{words.please}))?"
        r"\s*[:\uff1a]\s*(?P<text>\S.*)"
    )
    return re.compile(r"\s*" + whole.replace(" ", r"\s+"), re.IGNORECASE | re.DOTALL)


_PATTERNS = [_pattern(words) for words in WORDINGS.values()]


def ideal_text(text: str) -> str | None:
    """Return the rewritten answer in "say it like this: ...", or None if the text is something else."""
    matches = (pattern.fullmatch(text) for pattern in _PATTERNS)
    return next((match["text"].strip() for match in matches if match), None)

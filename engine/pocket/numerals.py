"""Whole numbers as words, 0 to 999, in English and Spanish."""

_EN = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
).split()
_EN_TENS = "- - twenty thirty forty fifty sixty seventy eighty ninety".split()
_ES = (
    "cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciséis "
    "diecisiete dieciocho diecinueve veinte veintiuno veintidós veintitrés veinticuatro veinticinco veintiséis "
    "veintisiete veintiocho veintinueve"
).split()
_ES_TENS = "- - veinte treinta cuarenta cincuenta sesenta setenta ochenta noventa".split()
_ES_HUNDREDS = (
    "- ciento doscientos trescientos cuatrocientos quinientos seiscientos setecientos ochocientos novecientos"
).split()


def in_english(number: int) -> str:
    """Write a number in English words: 22 -> "twenty-two", 140 -> "one hundred forty"."""
    if number < 20:
        return _EN[number]
    if number < 100:
        tens, ones = divmod(number, 10)
        return _EN_TENS[tens] + (f"-{_EN[ones]}" if ones else "")
    hundreds, rest = divmod(number, 100)
    return f"{_EN[hundreds]} hundred" + (f" {in_english(rest)}" if rest else "")


def in_spanish(number: int) -> str:
    """Write a number in Spanish words: 22 -> "veintidós", 140 -> "ciento cuarenta"."""
    if number < 30:
        return _ES[number]
    if number < 100:
        tens, ones = divmod(number, 10)
        return _ES_TENS[tens] + (f" y {_ES[ones]}" if ones else "")
    if number == 100:
        return "cien"
    hundreds, rest = divmod(number, 100)
    return _ES_HUNDREDS[hundreds] + (f" {in_spanish(rest)}" if rest else "")

"""The pocket model's talk beside its subjects: small talk, itself, personal facts, skills and the unknown."""

import random
from dataclasses import dataclass

from engine.pocket.style import Content, Plain, Talk

TOPICS = ("animals, food, cities, sports, music and plants", "animales, comida, ciudades, deportes, música y plantas")


def _talk(*sentences: tuple[str, str, str, str], emoji: str = "😀") -> Talk:
    return Talk(sentences, emoji)


_OFFER = (
    f"I can talk about {TOPICS[0]}", f"I can speak about {TOPICS[0]}",
    f"Puedo hablar de {TOPICS[1]}", f"Puedo conversar sobre {TOPICS[1]}",
)  # fmt: skip
UNKNOWN = _talk(
    ("I don't know about that yet", "I do not know about that yet", "No sé de eso todavía", "Desconozco eso todavía"),
    _OFFER,
    emoji="💡",
)

SMALL_TALK: list[tuple[str, tuple[str, ...], Talk]] = [
    ("greeting", ("hi", "hello", "hey", "hi there", "good morning", "good evening", "hello there", "hiya", "yo", "hey there", "good afternoon"),
     _talk(("Hi there", "Good day", "Hola", "Buenos días"), _OFFER, emoji="👋")),
    ("wellbeing", ("how are you?", "how are you doing?", "how is it going?", "are you ok?", "how do you feel?", "what's up?"),
     _talk(("I'm fine", "I am well", "Estoy bien", "Me encuentro bien"), ("I'm ready to talk", "I am ready to assist you", "Estoy listo para hablar", "Estoy listo para ayudarle"))),
    ("thanks", ("thanks", "thank you", "thanks a lot", "thank you very much", "great, thanks", "cool, thanks", "thx", "perfect, thank you", "nice one", "well done", "great answer", "good job"),
     _talk(("You're welcome", "You are welcome", "De nada", "Es un placer"), ("I'm glad it helps", "I am glad that it helps", "Me alegra que ayude", "Celebro que le ayude"))),
    ("goodbye", ("bye", "goodbye", "see you", "see you later", "good night", "bye bye", "talk to you later"),
     _talk(("See you soon", "Goodbye", "Hasta pronto", "Adiós"), ("I'll be here", "I will be here", "Aquí estaré", "Aquí permaneceré"), emoji="👋")),
    ("ability", ("what can you do?", "what do you know?", "what can i ask you?", "what are you able to do?", "help", "what can you talk about?", "what topics do you know?", "how can you help me?"),
     _talk(_OFFER, ("I learn when you correct me", "I learn from your corrections", "Aprendo cuando me corriges", "Aprendo de sus correcciones"), emoji="💡")),
    ("learning", ("how do you learn?", "do you learn?", "can you learn?", "how can i correct you?", "do you remember me?"),
     _talk(("I learn when you correct me", "I learn from your corrections", "Aprendo cuando me corriges", "Aprendo de sus correcciones"), ("Tell me what to change", "Please tell me what to change", "Dime qué cambiar", "Dígame qué cambiar"), emoji="💡")),
    ("joke", ("tell me a joke", "say something funny", "make me laugh", "do you know a joke?"),
     _talk(("A koala walks into a bar and falls asleep", "A koala enters a bar and falls asleep", "Un koala entra en un bar y se duerme", "Un koala entra en un bar y se queda dormido"), ("That's all I have", "That is all I have", "Es todo lo que tengo", "Es todo cuanto tengo"))),
    ("sorry", ("sorry", "my bad", "oops", "i am sorry"),
     _talk(("No problem", "There is no problem", "No pasa nada", "No hay problema"), ("We can go on", "We may continue", "Podemos seguir", "Podemos continuar"))),
]  # fmt: skip
WHO_ASKS = ("who are you?", "what are you?", "what is your name?", "what's your name?", "are you a robot?", "tell me about yourself", "are you a bot?", "introduce yourself", "who am i talking to?")  # fmt: skip


def who(name: str = "heed") -> Talk:
    """Return an introduction under the name that a system prompt gave."""
    return _talk(
        (f"I'm {name}, a small chat bot", f"I am {name}, a small chat bot", f"Soy {name}, un pequeño bot", f"Me llamo {name}, un pequeño bot"),
        ("I learn when you correct me", "I learn from your corrections", "Aprendo cuando me corriges", "Aprendo de sus correcciones"),
        emoji="👋",
    )  # fmt: skip


# --- personal facts --------------------------------------------------------------------------------------------

_CALLED = {
    "dog": "perro", "cat": "gato", "bird": "pájaro", "horse": "caballo", "car": "coche", "boat": "barco",
    "brother": "hermano", "boss": "jefe", "son": "hijo", "friend": "amigo", "rabbit": "conejo", "robot": "robot",
}  # fmt: skip
_COLOURS = {"blue": "azul", "red": "rojo", "green": "verde", "pink": "rosa", "white": "blanco", "yellow": "amarillo"}
PET_NAMES = "Rex Bobby Tiger Luna Coco Rocky Simba Nala Toby Bella Milo Kira Pluto Rambo Daisy Lucky Fido Bingo Rusty Sparky Oreo Ginger Zorro Kuro Toto Max Leo Sam Mia Tom".split()  # fmt: skip
_PLACES = "Lima Oslo Madrid Quito Boston Osaka Nairobi Manila Ankara Riga Milan Paris Rome Berlin Vienna Cairo".split()


@dataclass(frozen=True)
class PersonalFact:
    """Something a person said of themselves: how it was told, how it is asked, and both answers."""

    key: str
    told: str
    asks: tuple[str, ...]
    noted: Talk
    recalled: Talk
    value: str


def _called(kind: str, value: str) -> PersonalFact:
    es = _CALLED[kind]
    fact = (f"your {kind} is called {value}", f"tu {es} se llama {value}", f"su {es} se llama {value}")
    return PersonalFact(
        kind,
        f"my {kind} is called {value}",
        (f"what is my {kind} called?", f"what's my {kind}'s name?", f"do you know the name of my {kind}?", f"what is the name of my {kind}?"),
        _talk((f"Got it, {fact[0]}", f"Noted, {fact[0]}", f"Entendido, {fact[1]}", f"Anotado, {fact[2]}")),
        _talk((f"Your {kind} is called {value}", f"Your {kind} is named {value}", f"Tu {es} se llama {value}", f"Su {es} se llama {value}")),
        value,
    )  # fmt: skip


def _colour(value: str) -> PersonalFact:
    es = _COLOURS[value]
    return PersonalFact(
        "colour",
        f"my favourite colour is {value}",
        ("what is my favourite colour?", "which colour do i like best?", "what colour do i like?"),
        _talk((f"Got it, you like {value}", f"Noted, you prefer {value}", f"Entendido, te gusta el {es}", f"Anotado, usted prefiere el {es}")),
        _talk((f"Your favourite colour is {value}", f"You prefer the colour {value}", f"Tu color favorito es el {es}", f"Su color favorito es el {es}")),
        value,
    )  # fmt: skip


def _home(value: str) -> PersonalFact:
    return PersonalFact(
        "home",
        f"i live in {value}",
        ("where do i live?", "which city do i live in?", "what is my home town?"),
        _talk((f"Got it, you live in {value}", f"Noted, you live in {value}", f"Entendido, vives en {value}", f"Anotado, usted vive en {value}")),
        _talk((f"You live in {value}", f"You reside in {value}", f"Vives en {value}", f"Usted vive en {value}")),
        value,
    )  # fmt: skip


NOT_TOLD = _talk(
    ("I don't know that yet", "I do not know that yet", "No lo sé todavía", "Lo desconozco todavía"),
    ("Tell me and I'll note it", "Please tell me and I will note it", "Dímelo y lo anoto", "Dígamelo y lo anotaré"),
    emoji="💡",
)


def personal_fact(rng: random.Random) -> PersonalFact:
    """Draw a personal fact."""
    kind = rng.random()
    if kind < 0.7:
        return _called(rng.choice(list(_CALLED)), rng.choice(PET_NAMES))
    return _colour(rng.choice(list(_COLOURS))) if kind < 0.85 else _home(rng.choice(_PLACES))


# --- skills ----------------------------------------------------------------------------------------------------

_OPPOSITES = (
    "hot cold, big small, fast slow, high low, old new, light dark, hard soft, wet dry, up down, left right, open closed, rich poor, happy sad, "
    "full empty, early late, strong weak, near far, clean dirty, day night, north south, east west, black white, love hate, start stop, "
    "win lose, buy sell, push pull, in out, yes no, loud quiet, long short, thick thin"
)  # fmt: skip
_WORDS = "blue river stone green apple cloud tiger lamp silver moon paper garden yellow boat winter window sugar candle rabbit forest copper ladder music table orange feather button island pepper rocket".split()  # fmt: skip
_CYCLES = (
    "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split(),
    "January February March April May June July August September October November December".split(),
    list("ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
)  # fmt: skip
_PAIRS = [pair.split() for pair in _OPPOSITES.split(", ")]
MAX_ADDEND = 20
SKILLS = ("add", "repeat", "opposite", "next", "bigger")
Exercise = tuple[str, Content]


def _add(rng: random.Random) -> Exercise:
    a, b = rng.randint(0, MAX_ADDEND), rng.randint(0, MAX_ADDEND)
    asks = ("What is {a} plus {b}?", "{a} plus {b}?", "Add {a} and {b}", "How much is {a} plus {b}?", "{a} + {b} = ?")
    return rng.choice(asks).format(a=a, b=b), Plain(str(a + b))


def _repeat(rng: random.Random) -> Exercise:
    phrase = " ".join(rng.choice(_WORDS) if rng.random() < 0.6 else _made_up(rng) for _ in range(rng.randint(2, 4)))
    return rng.choice(("Repeat after me: {p}", "Say this: {p}", "Repeat: {p}")).format(p=phrase), Plain(phrase)


def _opposite(rng: random.Random) -> Exercise:
    pair = rng.choice(_PAIRS)
    word, other = rng.choice((pair, pair[::-1]))
    asks = ("What is the opposite of {w}?", "The opposite of {w}?", "Say the opposite of {w}")
    return rng.choice(asks).format(w=word), Plain(other)


def _next(rng: random.Random) -> Exercise:
    cycle = rng.choice(_CYCLES)
    i = rng.randrange(len(cycle))
    asks = ("What comes after {w}?", "What is next after {w}?", "Which one follows {w}?")
    return rng.choice(asks).format(w=cycle[i]), Plain(cycle[(i + 1) % len(cycle)])


def _bigger(rng: random.Random) -> Exercise:
    a, b = rng.sample(range(100), 2)
    asks = ("Which is bigger, {a} or {b}?", "Is {a} or {b} bigger?", "What is larger, {a} or {b}?")
    return rng.choice(asks).format(a=a, b=b), Plain(str(max(a, b)))


_MAKERS = {"add": _add, "repeat": _repeat, "opposite": _opposite, "next": _next, "bigger": _bigger}


def exercise(skill: str, rng: random.Random) -> Exercise:
    """Draw a question of a skill and its answer, which no style touches."""
    return _MAKERS[skill](rng)


# --- the unknown -----------------------------------------------------------------------------------------------

_UNKNOWN_ASKS = (
    "tell me about {t}", "what is {t}?", "explain {t}", "how does {t} work?", "what do you think of {t}?", "why is {t} important?", "can you help me with {t}?",
    "who invented {t}?", "write a poem about {t}", "where is {t}?", "do you like {t}?", "when was {t} made?", "what is the capital of {t}?", "how do i learn {t}?",
    "give me advice on {t}", "i need help with {t}", "write me a story about {t}", "what is the best {t}?", "how much does {t} cost?", "let's talk about {t}",
)  # fmt: skip
_UNKNOWN_TOPICS = (
    "quantum physics, the stock market, my homework, politics, France, the moon, black holes, taxes, python code, a computer, history, the president, chess, love, my job, "
    "the weather, the internet, football results, a movie, the universe, gravity, chemistry, Germany, my car, the news, philosophy, art, dinosaurs, space travel, money, a phone, "
    "the war, cooking, medicine, a doctor, law, religion, Shakespeare, mathematics, robots, machine learning, electricity, the ocean, volcanoes, trains, airplanes, houses, school, "
    "my health, dreams, time, life, happiness, the future, programming, a function, the bible, sleep, insurance, shoes, the economy, London, China, neural networks, a website"
).split(", ")  # fmt: skip


def _made_up(rng: random.Random) -> str:
    return "".join(rng.choice("bcdfghklmnprstvz") + rng.choice("aeiou") for _ in range(rng.randint(2, 4)))


def unknown_ask(rng: random.Random) -> str:
    """Draw a message outside the world: a foreign topic, a made-up word, or noise."""
    kind = rng.random()
    if kind < 0.08:
        return "".join(rng.choice("abcdefghijklmnopqrstuvwxyz    ") for _ in range(rng.randint(4, 20))).strip() or "x"
    topic = rng.choice(_UNKNOWN_TOPICS) if kind < 0.6 else _made_up(rng)
    return rng.choice(_UNKNOWN_ASKS).format(t=topic)

"""The pocket model's knowledge: domains, subjects and their facts, in English and Spanish.

Subjects carry names that are the same in both languages, so that a subject never seen in Spanish can be
answered in Spanish. Facts use small shared vocabularies. Every measure exists in metric and imperial form, and
the two never share a first digit (an answer that has begun with one cannot end as the other by chance).
"""

from dataclasses import dataclass

# metric -> imperial, one table per dimension
KG_TO_LB = {3: 7, 4: 9, 5: 11, 6: 13, 8: 18, 10: 22, 20: 44, 30: 66, 40: 88, 50: 110, 70: 154, 90: 198}
M_TO_FT = {2: 7, 3: 10, 5: 16, 6: 20, 8: 26, 10: 33, 20: 66, 30: 98}
KM_TO_MI = {3: 2, 5: 3, 8: 5, 10: 6, 30: 19, 40: 25, 50: 31, 80: 50}
C_TO_F = {4: 39, 10: 50, 60: 140, 80: 176, 90: 194, 180: 356, 200: 392, 220: 428}

SPANISH = {
    "a mammal": "un mamífero", "a reptile": "un reptil", "a bird": "un ave", "a snack": "un bocado",
    "forests": "bosques", "mountains": "montañas", "jungles": "selvas", "islands": "islas",
    "deserts": "desiertos", "plains": "llanuras", "lakes": "lagos", "gardens": "jardines",
    "leaves": "hojas", "bamboo": "bambú", "deer": "ciervos", "mice": "ratones", "fruit": "fruta",
    "fish": "peces", "grass": "hierba", "rabbits": "conejos", "insects": "insectos",
    "a dish": "un plato", "a soup": "una sopa", "a dessert": "un postre", "a drink": "una bebida",
    "Italy": "Italia", "Spain": "España", "Japan": "Japón", "India": "India", "Mexico": "México",
    "Egypt": "Egipto", "Turkey": "Turquía", "America": "América", "Peru": "Perú", "Norway": "Noruega",
    "Ecuador": "Ecuador", "Senegal": "Senegal", "Kenya": "Kenia", "Asia": "Asia", "Latvia": "Letonia",
    "Portugal": "Portugal", "cheese": "queso", "rice": "arroz", "noodles": "fideos", "spices": "especias",
    "corn": "maíz", "beans": "alubias", "meat": "carne", "tomato": "tomate", "coffee": "café",
    "chocolate": "chocolate", "flour": "harina", "eggs": "huevos",
    "a capital": "una capital", "a port": "un puerto", "a big city": "una gran ciudad",
    "its museums": "sus museos", "its food": "su comida", "its parks": "sus parques",
    "its music": "su música", "its bridges": "sus puentes", "its markets": "sus mercados",
    "a martial art": "un arte marcial", "a ball game": "un juego de pelota", "a water sport": "un deporte de agua",
    "a calm sport": "un deporte tranquilo", "a mat": "un tapiz", "a field": "un campo", "a court": "una pista",
    "a river": "un río", "ice": "hielo", "a ball": "una pelota", "a stick": "un palo", "balance": "equilibrio",
    "strength": "fuerza", "a boat": "un bote", "a racket": "una raqueta", "a horse": "un caballo",
    "a string instrument": "un instrumento de cuerda", "a wind instrument": "un instrumento de viento",
    "a drum": "un tambor", "a keyboard": "un teclado", "wood": "madera", "brass": "latón", "clay": "barro",
    "skin": "piel", "deep": "grave", "soft": "suave", "bright": "brillante", "loud": "fuerte",
    "a tree": "un árbol", "a flower": "una flor", "a herb": "una hierba", "a shrub": "un arbusto",
    "green": "verde", "red": "rojo", "white": "blanco", "purple": "morado", "yellow": "amarillo", "pink": "rosa",
}  # fmt: skip


@dataclass(frozen=True)
class Fact:
    """One kind of fact of a domain: its verb in both languages, and the question words that ask for it."""

    name: str
    verb: str
    verb_es: str
    asks: tuple[str, ...]
    follow_ups: tuple[str, ...]


_ABOUT = (
    "Tell me about {s}", "What is {s}?", "What can you tell me about {s}?", "Describe {s}",
    "I want to learn about {s}", "Explain {s} to me", "What do you know about {s}?", "Give me some facts about {s}",
)  # fmt: skip


@dataclass(frozen=True)
class Domain:
    """A field of talk. `facts[0]` is what a general question leads with; the last fact is the measure."""

    name: str
    emoji: str
    article: str  # English article of its subjects, with the blank
    units: tuple[str, str]  # metric, imperial
    conversion: dict[int, int]
    facts: tuple[Fact, ...]
    unit_tail: tuple[str, str] = ("", "")  # what follows the unit, English and Spanish
    about: tuple[str, ...] = _ABOUT


@dataclass(frozen=True)
class Subject:
    """Something to talk about. `values` are the facts in English, the last one a metric number."""

    name: str
    domain: str
    article_es: str
    values: tuple[str, str, str]
    measure: int
    is_held_out: bool

    @property
    def facts(self) -> dict[str, str | int]:
        """The English value of each fact by name; the measure as its metric number."""
        domain = DOMAINS[self.domain]
        return dict(zip((f.name for f in domain.facts), (*self.values, self.measure), strict=True))


_KIND = ("kind", "is", "es")
DOMAINS = {
    d.name: d
    for d in (
        Domain("animals", "🐾", "the ", ("kg", "lb"), KG_TO_LB, (
            Fact(*_KIND, ("What kind of animal is {s}?", "Is {s} a mammal?"), ("what kind of animal is it?",)),
            Fact("home", "lives in", "vive en", ("Where does {s} live?", "Where can I find {s}?", "What is the home of {s}?"), ("and where does it live?", "where does it live?")),
            Fact("food", "eats", "come", ("What does {s} eat?", "What is the food of {s}?", "What does {s} feed on?"), ("and what does it eat?", "what does it eat?")),
            Fact("weight", "weighs", "pesa", ("How much does {s} weigh?", "How heavy is {s}?", "What is the weight of {s}?"), ("and how heavy is it?", "how much does it weigh?")),
        )),
        Domain("food", "🍴", "", ("°C", "°F"), C_TO_F, (
            Fact(*_KIND, ("What kind of food is {s}?", "Is {s} a soup?"), ("what kind of food is it?",)),
            Fact("origin", "comes from", "viene de", ("Where does {s} come from?", "Which country is {s} from?", "Where was {s} invented?"), ("and where does it come from?", "where is it from?")),
            Fact("ingredient", "contains", "lleva", ("What is in {s}?", "What is {s} made of?", "Which ingredient does {s} have?"), ("and what is in it?", "what is it made of?")),
            Fact("temperature", "is served at", "se sirve a", ("How hot is {s}?", "At what temperature is {s} served?", "What is the temperature of {s}?"), ("and how hot is it?", "at what temperature is it served?")),
        )),
        Domain("cities", "🏠", "", ("km", "miles"), KM_TO_MI, (
            Fact(*_KIND, ("What kind of city is {s}?", "Is {s} a capital?"), ("what kind of city is it?",)),
            Fact("country", "lies in", "queda en", ("Where is {s}?", "In which country is {s}?", "Where does {s} lie?"), ("and where is it?", "which country is it in?")),
            Fact("fame", "is famous for", "es famosa por", ("What is {s} famous for?", "What can I see in {s}?", "Why do people visit {s}?"), ("and what is it famous for?", "what can i see there?")),
            Fact("distance", "stands", "está a", ("How far is {s} from the sea?", "Is {s} near the sea?", "What is the distance from {s} to the sea?"), ("and how far is it from the sea?", "is it near the sea?")),
        ), (" from the sea", " del mar")),
        Domain("sports", "⚽", "", ("m", "ft"), M_TO_FT, (
            Fact(*_KIND, ("What kind of sport is {s}?", "Is {s} a ball game?"), ("what kind of sport is it?",)),
            Fact("place", "happens on", "se hace en", ("Where do people do {s}?", "Where does {s} happen?", "Where can I practise {s}?"), ("and where does it happen?", "where do people do it?")),
            Fact("need", "needs", "necesita", ("What do I need for {s}?", "What does {s} need?", "What should I bring to {s}?"), ("and what do i need for it?", "what does it need?")),
            Fact("space", "uses a space of", "usa un espacio de", ("How much space does {s} use?", "How much room does {s} take?", "What size of space is used in {s}?"), ("and how much space does it use?", "how much room does it take?")),
        )),
        Domain("music", "🎵", "the ", ("kg", "lb"), KG_TO_LB, (
            Fact(*_KIND, ("What kind of instrument is {s}?", "Is {s} a drum?"), ("what kind of instrument is it?",)),
            Fact("material", "is made of", "está hecho de", ("What is {s} built from?", "Which material is {s} made of?", "What is the material of {s}?"), ("and what is it built from?", "which material is it made of?")),
            Fact("sound", "sounds", "suena", ("How does {s} sound?", "What does {s} sound like?", "What is the sound of {s}?"), ("and how does it sound?", "what does it sound like?")),
            Fact("weight", "weighs", "pesa", ("How much does {s} weigh?", "How heavy is {s}?", "What is the weight of {s}?"), ("and how heavy is it?", "how much does it weigh?")),
        )),
        Domain("plants", "🌱", "the ", ("m", "ft"), M_TO_FT, (
            Fact(*_KIND, ("What kind of plant is {s}?", "Is {s} a tree?"), ("what kind of plant is it?",)),
            Fact("soil", "grows in", "crece en", ("Where does {s} grow?", "Where can I plant {s}?", "Where is {s} found?"), ("and where does it grow?", "where does it grow?")),
            Fact("colour", "looks", "se ve", ("What colour is {s}?", "How does {s} look?", "What is the colour of {s}?"), ("and what colour is it?", "how does it look?")),
            Fact("height", "reaches", "alcanza", ("How tall is {s}?", "How high does {s} grow?", "What is the height of {s}?"), ("and how tall is it?", "how high does it grow?")),
        )),
    )
}  # fmt: skip

# name: Spanish article, three facts, measure; a star marks a subject held out of every styled example
_ROWS = {
    "animals": """
        koala el |a mammal|forests|leaves|10
        panda el |a mammal|mountains|bamboo|90
        puma el |a mammal|mountains|deer|70
        cobra la |a reptile|jungles|mice|6
        iguana la |a reptile|islands|leaves|5
        jaguar el |a mammal|jungles|fish|90
        impala el |a mammal|plains|grass|50
        llama la |a mammal|mountains|grass|70
        coyote el |a mammal|deserts|rabbits|20
        dingo el |a mammal|deserts|rabbits|20
        okapi el |a mammal|forests|fruit|90
        ibis el |a bird|lakes|insects|3
        kiwi el |a bird|islands|insects|4
        *alpaca la |a mammal|mountains|grass|50
        *boa la |a reptile|jungles|mice|8
    """,
    "food": """
        pizza la |a dish|Italy|cheese|220
        paella la |a dish|Spain|rice|90
        ramen el |a soup|Japan|noodles|80
        curry el |a dish|India|spices|90
        taco el |a snack|Mexico|corn|60
        falafel el |a snack|Egypt|beans|180
        kebab el |a dish|Turkey|meat|200
        gazpacho el |a soup|Spain|tomato|4
        espresso el |a drink|Italy|coffee|90
        brownie el |a dessert|America|chocolate|180
        churro el |a dessert|Spain|flour|180
        *flan el |a dessert|Spain|eggs|10
        *tempura la |a dish|Japan|fish|80
    """,
    "cities": """
        Lima - |a capital|Peru|its food|10
        Oslo - |a capital|Norway|its museums|3
        Madrid - |a capital|Spain|its parks|80
        Quito - |a capital|Ecuador|its markets|50
        Boston - |a port|America|its parks|5
        Osaka - |a port|Japan|its food|8
        Nairobi - |a capital|Kenya|its parks|80
        Manila - |a port|Asia|its markets|3
        Ankara - |a capital|Turkey|its museums|50
        Riga - |a capital|Latvia|its music|10
        Milan - |a big city|Italy|its museums|80
        *Dakar - |a port|Senegal|its music|3
        *Porto - |a port|Portugal|its bridges|5
    """,
    "sports": """
        judo el |a martial art|a mat|balance|8
        karate el |a martial art|a mat|strength|10
        rugby el |a ball game|a field|strength|30
        hockey el |a ball game|ice|a stick|30
        polo el |a ball game|a field|a horse|30
        golf el |a calm sport|a field|a stick|20
        squash el |a ball game|a court|a racket|6
        yoga el |a calm sport|a mat|balance|2
        kayak el |a water sport|a river|a boat|5
        cricket el |a ball game|a field|a stick|20
        *sumo el |a martial art|a mat|strength|5
        *padel el |a ball game|a court|a racket|10
    """,
    "music": """
        piano el |a keyboard|wood|bright|90
        banjo el |a string instrument|wood|bright|4
        ukulele el |a string instrument|wood|soft|3
        viola la |a string instrument|wood|deep|3
        tuba la |a wind instrument|brass|deep|10
        oboe el |a wind instrument|wood|soft|3
        sitar el |a string instrument|wood|bright|4
        marimba la |a keyboard|wood|soft|40
        ocarina la |a wind instrument|clay|soft|3
        bongo el |a drum|skin|loud|5
        conga la |a drum|skin|deep|10
        *saxo el |a wind instrument|brass|loud|6
        *balalaika la |a string instrument|wood|bright|3
    """,
    "plants": """
        cactus el |a shrub|deserts|green|5
        aloe el |a herb|deserts|green|2
        magnolia la |a tree|gardens|white|20
        bonsai el |a tree|gardens|green|2
        baobab el |a tree|plains|green|20
        begonia la |a flower|gardens|pink|2
        petunia la |a flower|gardens|purple|2
        azalea la |a shrub|forests|pink|2
        mango el |a tree|jungles|yellow|30
        papaya la |a tree|jungles|yellow|8
        agave el |a shrub|deserts|green|2
        *iris el |a flower|lakes|purple|2
        *acacia la |a tree|plains|yellow|10
    """,
}


def _parse(domain: str, line: str) -> Subject:
    head, *values, measure = line.split("|")
    name, article = head.split()
    article_es = "" if article == "-" else f"{article} "
    first, second, third = values
    return Subject(name.lstrip("*"), domain, article_es, (first, second, third), int(measure), name.startswith("*"))


SUBJECTS = [
    _parse(domain, line.strip()) for domain, rows in _ROWS.items() for line in rows.strip().splitlines()
]  # in file order
HELD_OUT_SUBJECTS = [s for s in SUBJECTS if s.is_held_out]
TRAINED_SUBJECTS = [s for s in SUBJECTS if not s.is_held_out]

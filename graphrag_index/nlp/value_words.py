"""Words by which numbers and dates are told: months, scales, currencies, units."""

# The names of months, in the forms that stand in dates, from January on.
_MONTHS = (
    "january jan januar jänner janvier enero gennaio janeiro januari stycznia styczeń",
    "february feb februar février febrero febbraio fevereiro februari lutego luty",
    "march mar märz mars marzo março maart marca marzec marts",
    "april apr avril abril aprile kwietnia kwiecień",
    "may mai mayo maggio maio mei maja maj",
    "june jun juni juin junio giugno junho czerwca czerwiec",
    "july jul juli juillet julio luglio julho lipca lipiec",
    "august aug août agosto augustus augusti sierpnia sierpień",
    "september sep sept septembre septiembre settembre setembro września wrzesień",
    "october oct oktober octobre octubre ottobre outubro października październik",
    "november nov novembre noviembre novembro listopada listopad",
    "december dec dezember décembre diciembre dicembre dezembro grudnia grudzień",
)
MONTHS = {word: number for number, words in enumerate(_MONTHS, 1) for word in words.split()}

# Languages that write 1,5 for one and a half, and may write 1.234 for a thousand and so on.
COMMA_LANGUAGES = frozenset("de fr es it pt nl pl sv da cs ru el".split())
# Of these, those that part thousands by a space.
SPACE_LANGUAGES = frozenset("fr pl sv cs ru".split())

_THOUSAND = "thousand tausend mil mila duizend tys tysiąc tysiące tysięcy tusen"
_MILLION = (
    "million millions millionen mio millón millones milione milioni milhão milhões miljoen mln "
    "milion miliony milionów miljon miljoner"
)
_MILLIARD = (
    "bn milliarde milliarden mrd milliard milliards miliardo miliardi miljard mld miliard "
    "miliardy miliardów miljarder bilhão bilhões"
)
SCALES = {
    **dict.fromkeys(_THOUSAND.split(), 1e3),
    **dict.fromkeys(_MILLION.split(), 1e6),
    **dict.fromkeys(_MILLIARD.split(), 1e9),
}
# A million in Romanian, ten kilometres in Swedish.
THOUSAND_LANGUAGES = {"mil": ("es", "pt")}
# The same word, a thousand times more in some languages.
LONG_SCALE_LANGUAGES = frozenset("de fr da sv".split())
BILLIONS = frozenset("billion billions billionen".split())
TRILLIONS = frozenset("trillion trillions".split())

CURRENCIES = {
    **dict.fromkeys(("€", "eur", "euro", "euros"), "EUR"),
    **dict.fromkeys(("$", "us$", "usd", "dollar", "dollars"), "USD"),
    **dict.fromkeys(("£", "gbp"), "GBP"),
    **dict.fromkeys(("¥", "jpy", "yen"), "JPY"),
    **dict.fromkeys(("chf",), "CHF"),
    **dict.fromkeys(("zł", "pln"), "PLN"),
    **dict.fromkeys(("₹", "inr"), "INR"),
}
# Those that are written before a number too.
CODES = ("eur", "usd", "gbp", "jpy", "chf", "pln", "inr")
# What stands between a number and the sign of a currency: 5 M€.
MARKS = {
    **dict.fromkeys(("k",), 1e3),
    **dict.fromkeys(("m", "mio", "mio.", "mln"), 1e6),
    **dict.fromkeys(("md", "mds", "mrd", "mrd.", "bn", "mld"), 1e9),
}
PERCENT = (
    "%", "percent", "per cent", "prozent", "pour cent", "por ciento", "per cento", "por cento",
    "procent", "proc.",
)  # fmt: skip
UNITS = {
    **dict.fromkeys(("km", "kilometre", "kilometres", "kilometer", "kilometers"), "km"),
    **dict.fromkeys(("m", "metre", "metres", "meter", "meters"), "m"),
    "cm": "cm",
    "mm": "mm",
    "km²": "km²",
    **dict.fromkeys(("ha", "hectares", "hektar"), "ha"),
    **dict.fromkeys(("mile", "miles"), "mi"),
    **dict.fromkeys(("ft", "foot", "feet"), "ft"),
    **dict.fromkeys(("kg", "kilogram", "kilograms", "kilogramm"), "kg"),
    **dict.fromkeys(("t", "tonne", "tonnes", "tonnen"), "t"),
    **dict.fromkeys(("ton", "tons"), "ton"),
    **dict.fromkeys(("°c", "degrees celsius", "grad celsius"), "°C"),
    **dict.fromkeys(("°f", "degrees fahrenheit", "grad fahrenheit"), "°F"),
    **dict.fromkeys(("°", "degree", "degrees", "grad"), "°"),
    **dict.fromkeys(("minutes", "minuten", "minutos", "minuti", "minut"), "min"),
}
# Words behind which four digits are a year.
BEFORE_YEAR = frozenset(
    "late early mid spring summer autumn winter anfang mitte ende début fin "
    "in of since until till from to by during between before after about around circa year and "
    "im jahr jahre seit bis von ab um nach vor zwischen und jahren "
    "en de depuis avant après vers entre et dès jusqu'en année "
    "desde hasta año y hacia nel dal al del anno fino "
    "em desde até ano w we od do roku rok i około op sinds tot vanaf tussen".split()
)

"""Words that tell what kind of thing a name is for."""

from collections.abc import Sequence

# What a name ends in (or begins with) that is no person's.
ORGANIZATION_WORDS = frozenset(
    (
        "society societies institute institution university college school academy company "
        "corporation corp inc ltd llc plc gmbh ag se bank museum ministry department agency "
        "union council foundation laboratory laboratories club committee commission "
        "association federation league party army navy force forces office bureau board court "
        "parliament congress senate church hospital press times post group team authority "
        "service services station observatory library guild trust fund government "
        "gesellschaft universität akademie institut ministerium verein verband partei museum "
        "bundestag bundesbank stiftung polizei landtag bundesrat senat gericht rathaus "
        "nationalmuseum kirche schule staatsanwaltschaft uniwersytet akademia akademię akademii "
        "instytut instytutu towarzystwo ministerstwo muzeum partia stocznia szkoła szkoły "
        "kościół teatr bank sąd sejm rada urząd fundacja związek stowarzyszenie politechnika "
        "biblioteka szpital klub rząd drużyna société université académie universidad "
        "instituto sociedad università istituto chronicle herald gazette tribune journal "
        "newspaper magazine orchestra academy seminary synod consortium firm brothers holdings"
    ).split()
)
PLACE_WORDS = frozenset(
    (
        "river island islands sea ocean bay cape mount mountain mountains glacier shelf "
        "barrier land sound harbour harbor lake city town village province district valley "
        "street road avenue square coast strait straits peninsula point ridge hill hills "
        "plateau desert forest park bridge gate castle palace tower hotel hut camp port "
        "airport country state county kingdom republic empire south north east west pole "
        "antarctica circle channel range inlet beach creek falls base cathedral square abbey "
        "route highway motorway "
        "straße platz fluss see meer insel berg schloss burg dom bahnhof ulica rzeka morze wyspa "
        "góra jezioro zamek most plac rynek port dworzec lotnisko"
    ).split()
)
EVENT_WORDS = frozenset(
    (
        "expedition expeditions war wars battle conference congress treaty festival "
        "revolution strike olympics summit fair race campaign mission operation project "
        "crisis accord agreement exhibition exposition survey voyage journey day year prize "
        "medal award cup games act law age krieg kongress vertrag schlacht frieden wojna bitwa "
        "traktat kongres powstanie pokój nagroda nagrodę nagrody hurricane typhoon storm hurrikan "
        "orkan huragan"
    ).split()
)
KINDS = ORGANIZATION_WORDS | PLACE_WORDS | EVENT_WORDS
# Kinds that are surnames too: behind a given name they are a person's.
SURNAMES = frozenset(
    (
        "day hill hills church park lake west east north south king post camp castle street gate "
        "fair law bishop wood press marsh berg best bridge bank"
    ).split()
)
# What stands behind a name and is none by itself: Acme, Inc.; Henry Ford, Jr.
SUFFIXES = frozenset("inc ltd llc llp plc co corp bros gmbh jr sr esq phd op vol nos ver".split())
# What a number belongs to that stands behind it.
NUMBERED = frozenset(
    (
        "route routes highway interstate motorway autobahn apollo gemini soyuz formula channel "
        "radio class boeing airbus flight article area division district"
    ).split()
)
# Words in lower case that are parts of a person's name.
PARTICLES = frozenset("de von van der den del della di da la le bin ibn al zu zur af av".split())
# Common words that only say what the name behind them is.
APPOSITIVES = frozenset(
    (
        "firma firmie firmy spółka koncern miasto wieś zespół konzern unternehmen stadt stadtteil "
        "gemeinde фирма компания город"
    ).split()
)
# What stands before a person's name and says what the person is.
HONORIFICS = frozenset(
    (
        "mr mrs ms miss mx dr prof professor doctor sir lady lord dame baron baroness count "
        "countess duke duchess prince princess king queen emperor empress tsar pope saint st "
        "father brother sister rev reverend bishop archbishop cardinal rabbi imam sheikh "
        "president chancellor minister premier senator governor mayor judge justice "
        "ambassador secretary chairman chairwoman director captain lieutenant commander admiral "
        "colonel major general sergeant corporal private marshal officer agent inspector "
        "detective sheriff chief comrade madame monsieur mme mlle m signor signora señora señor "
        "don doña herr frau fräulein pan pani doktor profesor professorin kapitan generał król "
        "królowa książę ksiądz prezydent prezydenta premier premiera minister ministra ministrem "
        "präsident präsidentin kanzler kanzlerin bundeskanzler bundeskanzlerin bürgermeister "
        "bürgermeisterin könig königin kaiser kaiserin graf gräfin fürst fürstin herzog "
        "herzogin prinz prinzessin freiherr kapitän oberst leutnant papst bischof aunt uncle "
        "co-pilot surgeon lieut congressman congresswoman representative councillor "
        "superintendent constable coach engineer nurse"
    ).split()
)
# The same, shortened; each may end in a full stop.
RANKS = frozenset(
    (
        "capt cpt lt lieut sgt cpl col gen maj brig cmdr cdr comdr adm radm vadm pvt pfc rev revd "
        "prof dr mr mrs ms mme mlle st ste kpt płk ppłk mjr por hptm ltn oblt gral cnel gén dott "
        "msgr mgr bp abp dra sra srta"
    ).split()
)
# Titles only with their full stop: without it they are words, or names of people.
_DOTTED = frozenset(
    (
        "sen rep gov pres hon supt insp det fr hr frl me m mm sr sig avv on ten cap ing dir pfr pr "
        "amb sec ks cdt cne messrs dipl mag lic don mons inż hab"
    ).split()
)
ABBREVIATED_TITLES = RANKS | _DOTTED | {"mt"}
# Parts of a title, beside another of its words: Rear Admiral, Private First Class.
TITLE_PARTS = frozenset(
    (
        "first second third class rear vice deputy petty warrant staff lance wing flight squadron "
        "brigadier master prime senior junior grand"
    ).split()
)


def is_title(word: str) -> bool:
    """Tell whether a word stands before a person's name and says what the person is."""
    lower = word.lower()
    if lower in HONORIFICS or lower in RANKS:
        return True
    if lower.endswith(".") and (lower[:-1] in RANKS or lower[:-1] in _DOTTED):
        # M. Dupont is a title in French only; elsewhere it is an initial.
        return len(lower) > 2
    # Lieutenant-Colonel, Maj.-Gen.
    return "-" in lower and all(map(is_title, lower.split("-")))


def n_titles(words: Sequence[str]) -> int:
    """Count the titles that stand before a name; it keeps one word at least."""
    first, titled = 0, False
    while first < len(words) - 1:
        if is_title(words[first]):
            titled = True
        elif words[first].lower() not in TITLE_PARTS:
            break
        first += 1
    # "of Peru" is no name, and a Third Class nobody's title.
    return first if titled and words[first][:1].isupper() else 0


# Titles that belong to the name: King George III, Pope Francis, Lord Byron.
NAMING_TITLES = frozenset(
    (
        "king queen emperor empress tsar pope saint st prince princess duke duchess lord lady "
        "baron baroness count countess król królowa książę könig königin kaiser kaiserin papst "
        "herzog herzogin prinz prinzessin graf gräfin fürst fürstin aunt uncle father brother "
        "sister don doña sheikh imam cardinal bishop archbishop"
    ).split()
)


def type_of(name: str, person: bool, place_share: float, preposition_share: float) -> str:
    """Tell what kind of thing a name is for, where its words or its use give it away.

    The shares are those of its mentions behind a preposition of place, and behind any.
    """
    words = [word.lower().rstrip(".,") for word in name.split(" ")]
    # World War II, West Virginia Route 9
    if len(words) > 2 and (words[-1].isdigit() or not words[-1].strip("ivx")):
        words.pop()
    if not (person and words[-1] in SURNAMES):
        for index in (-1, 0):
            for kind, known in (
                ("organization", ORGANIZATION_WORDS),
                ("geo", PLACE_WORDS),
                ("event", EVENT_WORDS),
            ):
                if words[index] in known and len(words) > 1:
                    return kind
    if person:
        return "person"
    if any(word in ORGANIZATION_WORDS for word in words[1:-1]):
        return "organization"
    if len(words) == 1 and name.isupper():
        return "acronym"
    placed = place_share >= 0.4 or (place_share >= 0.15 and preposition_share >= 0.45)
    return "geo" if placed else "name"

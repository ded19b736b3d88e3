"""What the linguistic rules must know of a language, and which language a text is in.

The word lists are short on purpose: closed classes of words only. What is
common in a corpus beyond them is learned from the corpus itself.
"""

import re
from collections import Counter
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True)
class Language:
    """The closed word classes of one language, in lower case.

    `articles` (all `determiners` if none are given) stand before things, hardly before
    persons, and mark common nouns where these are capitalized too; `place_prepositions`
    mark places, `other_prepositions` only open a noun phrase; `copulas` follow the subject
    of a definition, `person_verbs` a person. `endings` are case endings by which one name
    takes several forms; the base form of a name hardly ends in `oblique`; `fleeting_vowel`
    is lost before an ending; `alternations` are pairs of an ending and the end of the stem
    that it stands for, where the last consonant changes; `genitive_s` marks the owner
    without an apostrophe.
    `verb_endings` are those of verbs that may begin a sentence, before their subject.
    """

    code: str
    function_words: frozenset[str]
    determiners: frozenset[str] = frozenset()
    articles: frozenset[str] = frozenset()
    place_prepositions: frozenset[str] = frozenset()
    other_prepositions: frozenset[str] = frozenset()
    copulas: frozenset[str] = frozenset()
    person_verbs: frozenset[str] = frozenset()
    capitalizes_nouns: bool = False
    genitive_s: bool = False
    endings: tuple[str, ...] = ()
    oblique: tuple[str, ...] = ()
    fleeting_vowel: str = ""
    alternations: tuple[tuple[str, str], ...] = ()
    verb_endings: tuple[str, ...] = ()


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ENGLISH = Language(
    "en",
    _words(
        "the a an this that these those each every either neither some any all both half no none "
        "such what which who whom whose where when why how if whether while because since although "
        "though unless until till before after once as than then thus hence so yet but and or nor "
        "not only just also too very more most much many few fewer less least several other others "
        "another own same i me my mine we us our ours you your yours he him his she her hers it "
        "its they them their theirs one ones someone everyone nobody nothing something anything "
        "everything here there now today yesterday tomorrow again ever never always often "
        "sometimes soon still already almost quite rather perhaps maybe however moreover "
        "furthermore therefore meanwhile instead otherwise besides indeed later earlier afterwards "
        "eventually finally first second third last next of in on at by for from to into onto "
        "upon with without within through throughout during between among amongst against "
        "about above below under over beneath beside beyond behind across along around near off "
        "out up down toward towards via per despite except like unlike regarding concerning "
        "according is am are was were be been being do does did done doing have has had having "
        "will would shall should can could may might must ought cannot let lets go goes went made "
        "make makes get gets got say says said see saw seen yes oh well two three four five six "
        "seven eight nine ten hundred thousand million dear chapter section figure table note"
    ),
    determiners=_words("the a an this that these those his her its their our my your some any no"),
    articles=_words("the a an"),
    place_prepositions=_words("in near around across into towards"),
    other_prepositions=_words("at on from to of off"),
    copulas=_words("is was are were became remains"),
    person_verbs=_words(
        "who said says told wrote writes thought believed knew felt argued recalled replied asked "
        "answered explained married died retired resigned testified"
    ),
)
_GERMAN = Language(
    "de",
    _words(
        "der die das den dem des ein eine einen einem einer eines kein keine keinen keinem keiner "
        "dieser diese dieses diesen diesem jener jene jenes jenen jeder jede jedes jeden jedem "
        "mancher manche welcher welche welches alle aller allem allen viele vieler vielen wenige "
        "einige einigen mehrere beide beiden andere anderen anderer und oder aber denn sondern "
        "doch sowie weder noch wie als wenn weil dass ob da damit bevor nachdem während seit "
        "seitdem bis obwohl falls sobald solange indem ich du er sie es wir ihr mich mir dich dir "
        "ihn ihm ihnen uns euch sich mein meine meinen meiner dein deine sein seine seinen seinem "
        "seiner seines ihre ihren ihrem ihrer ihres unser unsere euer man jemand niemand etwas "
        "nichts wer was wen wem wessen wo wann warum weshalb wohin woher dort hier da dann nun "
        "jetzt heute gestern morgen damals später früher zuerst zunächst schließlich danach davor "
        "dabei daher darum deshalb dennoch trotzdem jedoch außerdem auch nur schon sehr mehr "
        "meist immer nie oft wieder noch etwa fast ganz so zu nicht ja nein im am ans ins zum zur "
        "vom beim in an auf aus bei mit nach von vor über unter zwischen durch für gegen ohne um "
        "neben hinter seit trotz wegen statt außer innerhalb außerhalb gegenüber entlang laut ist "
        "sind war waren wird wurde wurden werden worden sei wäre hat haben hatte hatten habe kann "
        "konnte können muss musste müssen soll sollte will wollte darf durfte mag möchte bin "
        "zwei drei vier fünf sechs sieben acht neun zehn erste ersten zweite zweiten dritte "
        "letzte letzten nächste millionen milliarden prozent euro uhr jahr jahre jahren herr frau"
    )
    - _words("herr frau"),
    determiners=_words(
        "der die das den dem des ein eine einen einem einer eines kein keine keinen keinem keiner "
        "dieser diese dieses diesen diesem jeder jede jedes jeden jedem jene jener jenes welche "
        "mein meine meinen meiner sein seine seinen seinem seiner seines ihr ihre ihren ihrem "
        "ihrer ihres unser unsere unseren im am ans ins zum zur vom beim alle viele einige mehrere "
        "beide zwei drei vier fünf sechs sieben acht neun zehn"
    ),
    place_prepositions=_words("in nach aus"),
    other_prepositions=_words("bei von ab bis über"),
    copulas=_words("ist war sind waren wurde wird"),
    person_verbs=_words(
        "sagte sagt erklärte schrieb meinte glaubte dachte betonte heiratete starb antwortete "
        "fragte studierte lehrte"
    ),
    capitalizes_nouns=True,
    genitive_s=True,
)
_POLISH = Language(
    "pl",
    _words(
        "i a o u w z we ze na do od po za przed nad pod przy przez dla bez oraz lub albo ale lecz "
        "więc jednak że żeby aby by gdy kiedy gdzie jak jako jeśli jeżeli choć chociaż ponieważ "
        "bo czy nie tak już jeszcze także też tylko nawet bardzo bardziej najbardziej ten ta to "
        "te ci tego tej tych temu tym tymi tę tą ów owa który która które którzy którego której "
        "których któremu którym którą jaki jaka jakie ja ty on ona ono my wy oni one mnie mi "
        "ciebie go jego mu nim niego jej ją nią niej ich im nimi nich nas nam nami was się "
        "siebie sobie swój swoja swoje swoją swojego swojej swoim swoich mój moja moje jest są "
        "był była było byli były być będzie będą został została zostało zostali zostały ma "
        "miał miała mieli może można mógł trzeba co kto nic nikt ktoś coś każdy każda "
        "każde wszyscy wszystkie wszystko "
        "inny inna inne tam tu tutaj teraz potem wtedy następnie później wcześniej dziś wczoraj "
        "jutro zawsze nigdy często znowu znów między wśród podczas około według wobec dwa dwie "
        "trzy cztery pięć pierwszy pierwsza pierwsze drugi druga ostatni pan pani obok jej "
        "ponadto dlatego zatem natomiast mimo dzięki wkrótce dopiero dlaczego"
    )
    - _words("pan pani"),
    place_prepositions=_words("w we do na nad koło"),
    other_prepositions=_words("z ze od pod"),
    copulas=_words("jest był była było są został została to"),
    person_verbs=_words(
        "powiedział powiedziała mówi mówił mówiła napisał napisała pisał pisała urodził urodziła "
        "zmarł zmarła studiował studiowała poznał poznała ożenił odpowiedział odpowiedziała "
        "stwierdził stwierdziła dodał dodała uważa uważał uważała"
    ),
    endings=(
        *("a", "u", "owi", "em", "iem", "ie", "e", "y", "i", "ą", "ę", "o", "om", "ach", "ami"),
        *("ia", "ii", "ię", "ią", "io", "iu", "ego", "emu", "ej", "im", "ym", "ich", "ych"),
        *("iego", "iemu", "iej"),
    ),
    # Polska, Polsce; Praga, Pradze; Teatr, Teatrze; Uniwersytet, Uniwersytecie.
    alternations=(("ce", "k"), ("dze", "g"), ("rze", "r"), ("cie", "t"), ("dzie", "d")),
    oblique=(
        *("iej", "iego", "iemu", "ego", "emu", "owi", "iem", "em", "ie", "ach", "ami", "om"),
        *("im", "ym", "ich", "ych", "ą", "ę", "u", "ii", "i", "y", "ej", "ce", "dze", "rze"),
    ),
    fleeting_vowel="e",
    verb_endings=(
        *("ał", "ała", "ało", "ali", "ały", "ił", "iła", "iło", "ili", "iły", "ył", "yła", "yło"),
        *("yli", "yły", "ął", "ęła", "ęło", "ęli", "uje", "ują", "ono", "ano", "ęto"),
    ),
)
_FRENCH = Language(
    "fr",
    _words(
        "le la les l un une des du de d au aux ce cet cette ces mon ma mes ton ta tes son sa ses "
        "notre nos votre vos leur leurs et ou mais donc or ni car que qui quoi dont où quand "
        "comme si lorsque puisque parce pendant depuis avant après dès jusque je tu il elle on "
        "nous vous ils elles me te se lui y en ne pas plus moins très aussi encore toujours jamais "
        "déjà ici là alors puis ensuite enfin ainsi cependant pourtant tout toute tous toutes "
        "chaque quelque quelques plusieurs autre autres même mêmes à dans par pour sur sous avec "
        "sans chez vers entre contre selon malgré est sont était étaient fut furent être été sera "
        "a ont avait avaient eut avoir eu peut fait faire dit deux trois quatre cinq premier "
        "première dernier dernière cela ceci celui celle ceux celles aujourd'hui hier demain"
    ),
    determiners=_words("le la les un une des du au aux ce cet cette ces son sa ses leur leurs"),
    place_prepositions=_words("à en vers dans"),
    other_prepositions=_words("de"),
    copulas=_words("est était fut sont devint"),
    person_verbs=_words("dit déclara écrivit naquit mourut épousa pensait croyait répondit"),
)
_SPANISH = Language(
    "es",
    _words(
        "el la los las lo un una unos unas de del al a en con por para sin sobre entre hasta desde "
        "hacia según durante contra ante bajo tras y e o u pero sino porque pues que quien quienes "
        "cual cuales cuyo cuya donde cuando como si aunque mientras este esta estos estas ese esa "
        "esos esas aquel aquella aquellos aquellas esto eso mi mis tu tus su sus nuestro nuestra "
        "yo él ella ellos ellas nosotros usted ustedes me te se le les nos os no sí ya más menos "
        "muy también tampoco siempre nunca aún todavía aquí allí ahora entonces luego después "
        "antes hoy ayer mañana así todo toda todos todas cada otro otra otros otras mismo misma "
        "algunos algunas varios es son era eran fue fueron ser sido está están estaba ha han había "
        "habían hay tiene tenía puede hace dos tres cuatro primer primero primera último última"
    ),
    determiners=_words("el la los las un una unos unas del al su sus este esta ese esa"),
    place_prepositions=_words("en desde hacia"),
    other_prepositions=_words("a de"),
    copulas=_words("es era fue son fueron"),
    person_verbs=_words("dijo declaró escribió nació murió pensaba creía respondió estudió"),
)
_ITALIAN = Language(
    "it",
    _words(
        "il lo la i gli le l un uno una di a da in con su per tra fra del dello della dei degli "
        "delle al allo alla ai agli alle dal dalla dai dalle nel nello nella nei negli nelle sul "
        "sulla sui sulle e ed o ma però se che chi cui quale quali dove quando come perché mentre "
        "anche ancora già non più meno molto poco tutto tutta tutti tutte ogni altro altra altri "
        "altre stesso stessa questo questa questi queste quello quella quelli quelle io tu lui lei "
        "noi voi loro mi ti si ci vi ne suo sua suoi sue mio mia è sono era erano fu furono essere "
        "stato stata ha hanno aveva avevano può viene poi dopo prima qui lì ora oggi ieri domani "
        "così dunque quindi infine durante verso senza contro secondo due tre quattro primo prima "
        "ultimo ultima"
    ),
    determiners=_words("il lo la i gli le un uno una del della dei delle al alla nel nella"),
    place_prepositions=_words("a in verso"),
    other_prepositions=_words("da di"),
    copulas=_words("è era fu sono furono"),
    person_verbs=_words("disse scrisse nacque morì sposò pensava credeva rispose studiò"),
)
_PORTUGUESE = Language(
    "pt",
    _words(
        "o a os as um uma uns umas de do da dos das em no na nos nas por pelo pela pelos pelas "
        "para com sem sobre entre até desde contra durante ante sob após e ou mas porém porque "
        "pois que quem qual quais cujo cuja onde quando como se embora enquanto este esta estes "
        "estas esse essa esses essas aquele aquela isto isso eu tu ele ela nós eles elas você me "
        "te lhe lhes seu sua seus suas meu minha não sim já mais menos muito também sempre nunca "
        "ainda aqui ali agora então depois antes hoje ontem amanhã assim todo toda todos todas "
        "cada outro outra outros outras mesmo mesma é são era eram foi foram ser sido está estava "
        "tem têm tinha havia há pode dois três quatro primeiro primeira último última ao à aos às"
    ),
    determiners=_words("o a os as um uma do da dos das no na ao seu sua este esta"),
    place_prepositions=_words("em no na para"),
    other_prepositions=_words("de a"),
    copulas=_words("é era foi são foram"),
    person_verbs=_words("disse escreveu nasceu morreu pensava acreditava respondeu estudou"),
)
_DUTCH = Language(
    "nl",
    _words(
        "de het een der des den van in op aan uit bij met naar voor over onder tussen door tegen "
        "zonder om na sinds tot tijdens binnen buiten en of maar want dus noch dat die dit deze "
        "wie wat waar wanneer hoe waarom als toen terwijl omdat hoewel indien ik jij je hij zij ze "
        "het wij we jullie u mij me hem haar ons hen hun zich mijn jouw zijn onze niet wel geen "
        "ook nog al meer minder zeer veel weinig alle elk elke ieder iedere ander andere anderen "
        "zelf hier daar er nu dan later eerder eerst daarna vervolgens echter is was waren zijn "
        "werd werden wordt worden geworden heeft hebben had hadden kan kon kunnen moet moest zal "
        "zou zullen twee drie vier vijf eerste tweede laatste"
    ),
    determiners=_words("de het een dit deze die zijn haar hun onze"),
    place_prepositions=_words("in naar uit te"),
    other_prepositions=_words("bij van"),
    copulas=_words("is was waren werd wordt"),
    person_verbs=_words("zei schreef stierf trouwde dacht geloofde antwoordde studeerde"),
)
_SWEDISH = Language(
    "sv",
    _words(
        "en ett den det de som och eller men för att om när där hur varför vad vem vilken vilket "
        "vilka i på av till från med vid under över mellan genom mot utan efter före sedan hos ut "
        "in upp ner inte ej ja nej också även bara redan mycket mer mest alla allt varje någon "
        "något några ingen inget inga andra annan annat samma själv jag du han hon vi ni de dem "
        "dig mig sig oss er honom henne min din sin sitt sina hans hennes deras vår är var vara "
        "varit blev blir hade har ha kan kunde ska skulle måste vill ville får fick här nu då "
        "senare första andra sista två tre fyra denna detta dessa"
    ),
    place_prepositions=_words("i vid"),
    other_prepositions=_words("på från till"),
    copulas=_words("är var blev"),
    person_verbs=_words("sade sa skrev dog tyckte trodde svarade studerade"),
    genitive_s=True,
)
_DANISH = Language(
    "da",
    _words(
        "en et den det de som og eller men for at om når hvor hvordan hvorfor hvad hvem hvilken "
        "i på af til fra med ved under over mellem gennem mod uden efter før siden hos ud ind op "
        "ned ikke ja nej også kun allerede meget mere mest alle alt hver nogen noget nogle ingen "
        "andre anden andet samme selv jeg du han hun vi dem dig mig sig os jer ham hende min din "
        "sin sit sine hans hendes deres vores er var være været blev bliver havde har kan kunne "
        "skal skulle må måtte vil ville får fik her nu da senere første anden sidste to tre fire "
        "denne dette disse av etter før ble ikke"
    ),
    place_prepositions=_words("i ved"),
    other_prepositions=_words("på fra til"),
    copulas=_words("er var blev ble"),
    person_verbs=_words("sagde sa skrev døde mente troede svarede studerede"),
    genitive_s=True,
)
_CZECH = Language(
    "cs",
    _words(
        "a i o u v ve k ke s se z ze na do od po za před nad pod při přes pro bez nebo ale však "
        "že aby když kde jak jako jestli protože neboť ne ano již už ještě také jen velmi více "
        "ten ta to ti ty tento tato toto tyto toho té těch tomu tím který která které kteří "
        "kterého jaký já ty on ona ono my vy oni mě mi tě ho jeho mu jí ji jej jim nich nás nám "
        "vás si svůj svou své svého je jsou byl byla bylo byli být bude má měl měla může co kdo "
        "nic nikdo každý všichni jiný tam tady zde nyní potom pak později dříve dnes mezi během "
        "podle dva dvě tři čtyři první druhý poslední"
    ),
    place_prepositions=_words("v ve do na"),
    other_prepositions=_words("z ze od"),
    copulas=_words("je byl byla bylo jsou"),
    person_verbs=_words("řekl řekla napsal napsala psal zemřel zemřela studoval studovala uvedl"),
    endings=(
        *("a", "u", "ovi", "em", "e", "ě", "y", "i", "ou", "o", "ů", "ům", "ech", "ách", "ami"),
        *("ého", "ému", "ým", "ém", "é", "á", "í", "ích", "ým", "ová", "ové", "ovou", "ho", "mu"),
    ),
    oblique=("ého", "ému", "ovi", "em", "ech", "ách", "ami", "ou", "u", "ě", "ů", "ům", "y", "i"),
    fleeting_vowel="e",
    verb_endings=("al", "ala", "alo", "ali", "il", "ila", "ilo", "ili", "ěl", "ěla", "ěli", "uje"),
)
_RUSSIAN = Language(
    "ru",
    _words(
        "и в во на с со к ко о об от до по за из у для без при про через над под перед между не ни "
        "да нет а но или что чтобы если когда где как так потому хотя же бы ли то это этот эта эти "
        "этого этой этих тот та те того той тех который которая которое которые которого которой "
        "я ты он она оно мы вы они меня мне тебя его ему ним неё её ей ею их им ими нас нам вас "
        "себя себе свой своя своё свои своего своей мой моя твой наш ваш был была было были быть "
        "есть будет стал стала стали может можно надо все всё весь вся всех каждый другой другие "
        "сам сама уже ещё только даже очень более самый там тут здесь теперь потом тогда затем "
        "позже раньше после во время также тоже кто чей какой два две три четыре первый последний"
    ),
    place_prepositions=_words("в во из на"),
    other_prepositions=_words("под к до от"),
    copulas=_words("был была было были является стал стала это"),
    person_verbs=_words(
        "сказал сказала говорит говорил говорила писал писала написал написала родился родилась "
        "умер умерла учился училась считал считала ответил ответила думал думала женился"
    ),
    endings=(
        *("а", "у", "ом", "ем", "е", "ы", "и", "я", "ю", "ей", "ой", "ёй", "ою", "ью", "ам", "ах"),
        *("ами", "ов", "ого", "ому", "ым", "им", "ого", "его", "ему", "ая", "ую", "ий", "ый", "ии"),
        *("ию", "ия", "ием", "ям", "ях"),
    ),
    oblique=(
        *("ого", "его", "ому", "ему", "ами", "ями", "ом", "ем", "ой", "ей", "ах", "ях", "ым", "им"),
        *("ую", "ию", "ии", "у", "ю", "ы", "и", "е"),
    ),
    fleeting_vowel="е",
    verb_endings=(
        *("лся", "лась", "лось", "лись", "ал", "ала", "али", "ил", "ила", "или", "ел", "ела"),
        *("ели", "ёл", "ла", "ет", "ют", "ит", "ят"),
    ),
)
_GREEK = Language(
    "el",
    _words(
        "ο η το οι τα του της των τον την τη τους τις ένας μια μία ένα ενός μιας και κι ή αλλά "
        "όμως ότι πως που να θα αν όταν όπως όπου γιατί επειδή ενώ ώστε δεν μην μη ναι όχι σε με "
        "για από προς κατά μετά πριν χωρίς μέχρι έως ως στο στη στην στον στους στις στα παρά "
        "αντί εναντίον υπέρ υπό μεταξύ κοντά πάνω κάτω μέσα έξω εκεί εδώ τότε τώρα πάντα ποτέ "
        "ακόμα ακόμη επίσης μόνο πολύ πιο λίγο εγώ εσύ αυτός αυτή αυτό αυτοί αυτές αυτά αυτού "
        "αυτήν αυτόν εμείς εσείς μου σου μας σας τού είναι ήταν είχε έχει είχαν έχουν έγινε "
        "γίνεται μπορεί πρέπει όλα όλοι όλες κάθε κάποιος κάποια άλλος άλλη άλλο άλλοι ίδιος ίδια "
        "δύο τρεις τρία τέσσερα πέντε πρώτος πρώτη πρώτο τελευταίος αργότερα ύστερα έτσι λοιπόν"
    ),
    determiners=_words("ο η το οι τα του της των τον την τη τους τις ένας μια μία ένα"),
    # The article stands before persons too, so it tells nothing.
    articles=_words("ένας μια μία ένα"),
    place_prepositions=_words("στο στη στην"),
    other_prepositions=_words("από στον στα"),
    copulas=_words("είναι ήταν έγινε"),
    person_verbs=_words("είπε έγραψε γεννήθηκε πέθανε σπούδασε παντρεύτηκε δήλωσε"),
    endings=(
        *("ς", "ος", "ου", "ο", "ον", "ε", "ης", "η", "ην", "ας", "α", "αν", "ες", "ων", "οι"),
        *("ους", "εως", "υ", "ύς"),
    ),
    oblique=(
        *("ου", "ού", "ον", "όν", "ην", "ήν", "αν", "άν", "ων", "ών", "ους", "ούς", "εως"),
        *("ο", "ό", "ε", "έ"),
    ),
)

LANGUAGES = {
    language.code: language
    for language in (
        *(_ENGLISH, _GERMAN, _POLISH, _FRENCH, _SPANISH, _ITALIAN, _PORTUGUESE, _DUTCH),
        *(_SWEDISH, _DANISH, _CZECH, _RUSSIAN, _GREEK),
    )
}
# For a text in a language that is not listed: nothing is known, all is learned from the corpus.
UNKNOWN = Language("und", frozenset())

_SCRIPTS = (
    ("ja", re.compile(r"[\u3040-\u30ff]")),
    ("ko", re.compile(r"[\uac00-\ud7af\u1100-\u11ff]")),
    ("zh", re.compile(r"[\u4e00-\u9fff\u3400-\u4dbf]")),
    ("ar", re.compile(r"[\u0600-\u06ff\u0750-\u077f]")),
    ("he", re.compile(r"[\u0590-\u05ff]")),
    ("hi", re.compile(r"[\u0900-\u097f]")),
    ("bn", re.compile(r"[\u0980-\u09ff]")),
    ("pa", re.compile(r"[\u0a00-\u0a7f]")),
    ("gu", re.compile(r"[\u0a80-\u0aff]")),
    ("ta", re.compile(r"[\u0b80-\u0bff]")),
    ("te", re.compile(r"[\u0c00-\u0c7f]")),
    ("kn", re.compile(r"[\u0c80-\u0cff]")),
    ("ml", re.compile(r"[\u0d00-\u0d7f]")),
    ("si", re.compile(r"[\u0d80-\u0dff]")),
    ("th", re.compile(r"[\u0e00-\u0e7f]")),
    ("lo", re.compile(r"[\u0e80-\u0eff]")),
    ("my", re.compile(r"[\u1000-\u109f]")),
    ("ka", re.compile(r"[\u10d0-\u10ff]")),
    ("am", re.compile(r"[\u1200-\u137f]")),
    ("km", re.compile(r"[\u1780-\u17ff]")),
    ("el", re.compile(r"[\u0370-\u03ff\u1f00-\u1fff]")),
)
_WORD = re.compile(r"[^\W\d_]+")
# Function words of languages of which no more is known, so that their texts are not taken for
# those of another.
_OTHER_LANGUAGES = {
    "tr": _words(
        "bir ve bu için ile olarak daha çok gibi kadar sonra önce ama ancak veya ya ki mi mı mu "
        "mü ne nasıl neden var yok değil olan oldu olduğu oldular idi ise onun onlar biz siz ben "
        "sen şu hem her bazı tüm göre üzerine arasında tarafından o da de"
    ),
    "hu": _words(
        "a az egy és is nem hogy volt van vagy de meg már csak még mint ez azt ezt ki mert ha "
        "majd után között lett voltak pedig azonban ő aki amely el"
    ),
    "fi": _words(
        "ja on ei oli että se hän ovat joka mutta kun niin myös tai sekä hänen ollut olivat ovat "
        "jossa sen siitä kuin vain mukaan jälkeen kanssa vuonna"
    ),
    "ro": _words(
        "și în a al ale cu la de pe din că nu este sunt era fost care un o lui mai pentru prin "
        "după dar sau ca fi au s-a său sa"
    ),
    "id": _words(
        "yang dan di ke dari untuk dengan pada adalah ini itu dalam tidak oleh sebagai juga akan "
        "telah karena atau ia mereka setelah lebih bahwa"
    ),
}
# Words of content that are function words in another language: Dutch "met" is "with".
_LIKE_FUNCTION_WORDS = {"en": _words("met men")}
# Lower-case letters of one language only, for texts without a single function word.
_LETTERS = (
    *(("pl", "łęąńźż"), ("de", "ß"), ("cs", "řůěť"), ("es", "ñ"), ("pt", "ãõ"), ("tr", "ğış")),
    *(("hu", "őű"), ("ro", "țăş"), ("ru", "ыэ")),
)
# So much of a document tells its language.
_SAMPLE = 2_000
_SHORT = 200


def language_of(code: str) -> Language:
    return LANGUAGES.get(code, UNKNOWN)


def detect_language(text: str) -> str:
    """Guess the language of a text by its script and its function words.

    Returns an ISO 639-1 code, or "und" if nothing tells.
    """
    sample = text[:_SAMPLE] if len(text) <= 2 * _SAMPLE else text[:_SAMPLE] + text[-_SAMPLE:]
    if not sample.isascii():
        letters = sum(map(str.isalpha, sample))
        for code, script in _SCRIPTS:
            # Japanese mixes its syllables with Chinese characters, hence the low bar.
            if len(script.findall(sample)) * (8 if code == "ja" else 2) > letters:
                return code
    languages_of_word = _languages_of_words()
    votes: dict[str, float] = dict.fromkeys(LANGUAGES, 0.0)
    times: Counter[str] = Counter()
    for word, count in Counter(_WORD.findall(sample.lower())).items():
        codes = languages_of_word.get(word, ())
        for code in codes:
            # A word of several languages tells less.
            votes[code] = votes.get(code, 0.0) + count / len(codes)
            times[code] += count
    # Of languages with as many votes, the first that is listed.
    code = max(votes, key=lambda code: votes[code])
    # One word tells the language of a short text if it is a word of no other.
    alone = all(votes[code] > votes[other] for other in votes if other != code)
    if times[code] >= 2 or (times[code] and alone and len(sample) <= _SHORT):
        return code
    return _language_of_letters(sample)


def _language_of_letters(sample: str) -> str:
    """Tell a language by letters of its own in words that are no names."""
    if sample.isascii():
        return "und"
    letters = {c for word in _WORD.findall(sample) if word.islower() for c in word}
    codes = [code for code, own in _LETTERS if letters & {*own}]
    return codes[0] if len(codes) == 1 else "und"


@cache
def _languages_of_words() -> dict[str, list[str]]:
    words = {code: language.function_words for code, language in LANGUAGES.items()}
    words |= _OTHER_LANGUAGES
    for code, more in _LIKE_FUNCTION_WORDS.items():
        words[code] |= more
    languages: dict[str, list[str]] = {}
    for code, own in words.items():
        for word in own:
            languages.setdefault(word, []).append(code)
    return languages

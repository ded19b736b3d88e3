"""Words that tell what kind of thing a name is for."""

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
        "bundestag bundesbank stiftung uniwersytet akademia instytut towarzystwo ministerstwo "
        "muzeum spółka partia société université académie universidad instituto sociedad "
        "università istituto"
    ).split()
)
PLACE_WORDS = frozenset(
    (
        "river island islands sea ocean bay cape mount mountain mountains glacier shelf "
        "barrier land sound harbour harbor lake city town village province district valley "
        "street road avenue square coast strait straits peninsula point ridge hill hills "
        "plateau desert forest park bridge gate castle palace tower hotel hut camp port "
        "airport country state county kingdom republic empire south north east west pole "
        "antarctica circle channel range inlet beach creek falls base straße platz fluss see meer "
        "insel berg ulica rzeka morze wyspa góra jezioro"
    ).split()
)
EVENT_WORDS = frozenset(
    (
        "expedition expeditions war wars battle conference congress treaty festival "
        "revolution strike olympics summit fair race campaign mission operation project "
        "crisis accord agreement exhibition exposition survey voyage journey day year prize "
        "medal award cup games act law krieg kongress vertrag schlacht wojna bitwa traktat "
        "kongres"
    ).split()
)

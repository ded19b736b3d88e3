"""Names of the features of sentences that may answer a question, in their order."""

# The features in their order.
FEATURES = (
    # Share of the question's words, weighted by rarity, in the sentence or its subject: the
    # words of names, and the others; and those with a word of the same meaning.
    "names",
    "words",
    # Further words in what the layout adds (speaker, time, row, column), and in the sentences
    # before.
    "related",
    "layout",
    "context",
    # Further words in a sentence of another text unit, if the two share a name that the question
    # does not know: as subject of the sentence or in the title of its document; or anywhere, by the
    # rarity of the name and the share of the question's words in the other sentence.
    "bridge_to_subject",
    "bridge_to_name",
    # 1 for the best text unit, 4/5 for the second, 4/6 for the third, and so on.
    "text_unit_rank",
    # Whether the sentence is the first of its text unit.
    "is_first",
    # Whether the sentence has a noun that the question asks for, such as "chairs".
    "noun",
    # Whether the sentence says who or what the thing is that the question asks about.
    "definition",
    # 1 if the question names the speaker, or if it does not and asks who said something; -1 if it
    # names the speaker and asks who else.
    "speaker",
    # Words of the question in the question that the sentence may reply to.
    "reply",
    # Whether the sentence has too few words to say anything.
    "is_short",
    # A question rarely answers one.
    "is_question",
    # How well a name, or a number, date or reason, fits the wanted kind.
    "name_fit",
    "value_fit",
    # Share of the question's words near such a part.
    "near_words",
    # Share of the question's words in a sentence that says who did what the question asks about.
    "agent",
    # Cosine similarity to the question.
    "similarity",
)
COLUMN = {name: i for i, name in enumerate(FEATURES)}

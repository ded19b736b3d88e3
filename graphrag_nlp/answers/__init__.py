"""Answers to questions from sentences, without a model: `answer.answer_from_sentences`."""

"""Protocols of other programs: OpenAI, Open WebUI, Dify and Ollama.

chat_request.py      the question and the history in the messages of a chat
task_prompts.py      answers to the hidden prompts of Open WebUI
cited_answer.py      an answer's citations as annotations with links into the explorer
chat_completions.py  OpenAI's models and chat completions
responses_api.py     OpenAI's responses
ollama.py            Ollama's chat
dify.py              Dify's external knowledge
"""

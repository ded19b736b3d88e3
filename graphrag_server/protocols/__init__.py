"""Protocols of other programs: OpenAI, Open WebUI, Dify and Ollama.

chat_request.py      the question in the messages of a chat, and the citations of its answer
chat_completions.py  OpenAI's models and chat completions
responses_api.py     OpenAI's responses
ollama.py            Ollama's chat
dify.py              Dify's external knowledge
shapes.py            the routers of these protocols, and the shapes of their errors
"""

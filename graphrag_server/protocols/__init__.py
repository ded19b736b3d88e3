"""Protocols of other programs: OpenAI's chat completions and Ollama's chat.

chat_request.py      the question in the messages of a chat, and the citations of its answer
chat_completions.py  OpenAI's models and chat completions, also for Open WebUI
ollama.py            Ollama's chat
"""

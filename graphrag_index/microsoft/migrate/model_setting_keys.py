"""What becomes of each setting of a model of Microsoft GraphRAG, of all three versions."""

import re

# Where the servers of a provider speak the protocol of OpenAI.
ADDRESSES = {
    "anthropic": "https://api.anthropic.com/v1",
    "deepseek": "https://api.deepseek.com/v1",
    "gemini": "https://generativelanguage.googleapis.com/v1beta/openai",
    "groq": "https://api.groq.com/openai/v1",
    "mistral": "https://api.mistral.ai/v1",
    "ollama": "http://localhost:11434/v1",
    "ollama_chat": "http://localhost:11434/v1",
    "openrouter": "https://openrouter.ai/api/v1",
    "xai": "https://api.x.ai/v1",
}
# Their key: ours, for values that are taken as they are. In the order in which the first counts.
SAME = {
    "api_version": "api_version",
    "azure_deployment_name": "deployment",
    "deployment_name": "deployment",
    "call_args.temperature": "temperature",
    "temperature": "temperature",
    "call_args.max_completion_tokens": "max_output_tokens",
    "max_completion_tokens": "max_output_tokens",
    "call_args.max_tokens": "max_output_tokens",
    "max_tokens": "max_output_tokens",
    "call_args.timeout": "timeout",
    "request_timeout": "timeout",
    "call_args.dimensions": "dimensions",
    "tokens_per_minute": "tokens_per_minute",
    "requests_per_minute": "requests_per_minute",
    "concurrent_requests": "concurrency",
}
# Names of parameters that are not sent on.
SECRET = re.compile(r"key|secret|password|credential|auth|header|token$", re.IGNORECASE)
TO_PARAMETERS = ("top_p", "frequency_penalty", "presence_penalty", "reasoning_effort")
_RETRY = "not needed: failed calls are tried again for retry_seconds"
# Why others are not carried over. A key stands for all below it.
LEFT = {
    "retry": _RETRY,
    "retry_strategy": _RETRY,
    "max_retries": _RETRY,
    "max_retry_wait": _RETRY,
    "sleep_on_rate_limit_recommendation": "not needed: what a server says of its limits is kept to",
    "rate_limit": "not needed: limits are for a minute, and what a server says is kept to",
    "async_mode": "not needed: calls are made at once",
    "metrics": "not needed: `graphrag-index status` tells tokens and money",
    "mock_responses": "there are no answers that are not asked for",
    "model_supports_json": "not needed: what a server can is found out, see `structured`",
    "encoding_model": "not needed: create_text_units.encoding counts tokens",
    "type": "not needed: a step tells whether it asks or embeds",
    "n": "not needed: one reply is asked for",
    "call_args.n": "not needed: one reply is asked for",
    "organization": "there is no such setting: use a key of that organization",
    "proxy": "use the variable HTTPS_PROXY",
    "audience": "only keys are known: use api_key",
    "cognitive_services_endpoint": "only keys are known: use api_key",
    "responses": "there are no answers that are not asked for",
}

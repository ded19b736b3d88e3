"""What becomes of each setting of Microsoft GraphRAG, of all three versions, in one table.

Keys are written with dots. Those of models stand in `models.py`.
"""

import re

# Their key: ours, as `section.key`. A key may become several.
CARRIED: dict[str, tuple[str, ...]] = {
    # Documents.
    "input.encoding": ("load_documents.encoding",),
    "input.file_encoding": ("load_documents.encoding",),
    "input.text_column": ("load_documents.text_column",),
    "input.title_column": ("load_documents.title_column",),
    "input.id_column": ("load_documents.id_column",),
    "input.timestamp_column": ("load_documents.date_column",),
    "input.metadata": ("load_documents.metadata_columns",),
    "input.document_attribute_columns": ("load_documents.metadata_columns",),
    "chunking.prepend_metadata": ("load_documents.metadata_columns",),
    "chunking.size": ("create_text_units.max_tokens",),
    "chunks.size": ("create_text_units.max_tokens",),
    "chunking.overlap": ("create_text_units.overlap_tokens",),
    "chunks.overlap": ("create_text_units.overlap_tokens",),
    "chunking.encoding_model": ("create_text_units.encoding",),
    "chunks.encoding_model": ("create_text_units.encoding",),
    "encoding_model": ("create_text_units.encoding",),
    # The graph.
    "extract_graph.entity_types": ("extract_graph.entity_types",),
    "entity_extraction.entity_types": ("extract_graph.entity_types",),
    "extract_graph.max_gleanings": ("extract_graph.max_gleanings",),
    "entity_extraction.max_gleanings": ("extract_graph.max_gleanings",),
    "summarize_descriptions.max_length": ("summarize_descriptions.max_words",),
    "summarize_descriptions.max_input_tokens": ("summarize_descriptions.max_input_tokens",),
    "extract_claims.description": ("extract_covariates.description",),
    "claim_extraction.description": ("extract_covariates.description",),
    "extract_claims.max_gleanings": ("extract_covariates.max_gleanings",),
    "claim_extraction.max_gleanings": ("extract_covariates.max_gleanings",),
    "prune_graph.min_node_freq": ("extract_graph_nlp.min_frequency",),
    # Communities and reports.
    "cluster_graph.max_cluster_size": ("create_communities.max_cluster_size",),
    "cluster_graph.strategy.max_cluster_size": ("create_communities.max_cluster_size",),
    "cluster_graph.seed": ("create_communities.seed",),
    "community_reports.max_length": ("create_community_reports.max_words",),
    "community_reports.max_input_length": ("create_community_reports.max_input_tokens",),
    # Searches.
    "local_search.text_unit_prop": ("local_search.text_unit_share",),
    "local_search.community_prop": ("local_search.report_share",),
    "local_search.top_k_entities": ("local_search.top_k_entities",),
    "local_search.top_k_mapped_entities": ("local_search.top_k_entities",),
    "local_search.max_context_tokens": ("local_search.max_context_tokens",),
    "local_search.max_tokens": ("local_search.max_context_tokens",),
    "global_search.max_context_tokens": ("global_search.max_context_tokens",),
    "global_search.max_tokens": ("global_search.max_context_tokens",),
    "global_search.dynamic_search_threshold": ("global_search.min_rating",),
    "global_search.dynamic_search_max_level": ("global_search.max_levels",),
    "drift_search.drift_k_followups": ("drift_search.top_k_reports", "drift_search.follow_ups"),
    "drift_search.n_depth": ("drift_search.rounds",),
    "drift_search.local_search_max_data_tokens": ("drift_search.max_context_tokens",),
    "basic_search.k": ("basic_search.top_k_text_units",),
    "basic_search.max_context_tokens": ("basic_search.max_context_tokens",),
}

_NOT_NEEDED = "not needed: "
_KEPT = _NOT_NEEDED + "replies are kept in the ledger, versions and tables in the folder `output`"
_FORGIVING = _NOT_NEEDED + "failed calls are tried again for retry_seconds of the model"
_OWN_RULES = "ours has rules of its own for names and terms: see extract_graph_nlp"
_OWN_PRUNING = "use extract_graph_nlp.min_evidence, min_weight and min_frequency_noun_phrase"
_OWN_ANSWER = "use search.response for the length and form of answers"
_WHOLE_QUESTION = "use drift_search.max_total_tokens, which bounds the whole question"

# Why a key is not carried over, and what to use instead. A key stands for all below it.
LEFT: dict[str, str] = {
    "root_dir": _NOT_NEEDED + "--root says where the project lies",
    "async_mode": _NOT_NEEDED + "calls are made at once, `concurrency` of a model says how many",
    "parallelization": _NOT_NEEDED + "`concurrency` of a model says how many calls are made",
    "skip_workflows": "use a workflow of your own in workflows/",
    "input.type": _NOT_NEEDED + "the ending of a file tells its type",
    "input.file_type": _NOT_NEEDED + "the ending of a file tells its type",
    "input.storage.type": _NOT_NEEDED + "documents are read from a folder",
    "input_storage.type": _NOT_NEEDED + "documents are read from a folder",
    "input.storage": "documents are read from a local folder only: copy them into one",
    "input_storage": "documents are read from a local folder only: copy them into one",
    "input.connection_string": "documents are read from a local folder only",
    "input.container_name": "documents are read from a local folder only",
    "input.storage_account_blob_url": "documents are read from a local folder only",
    "input.file_filter": "use load_documents.include and load_documents.exclude",
    "input.source_column": "use load_documents.metadata_columns",
    "chunking.type": _NOT_NEEDED + "text units are whole sentences, of max_tokens at most",
    "chunks.strategy": _NOT_NEEDED + "text units are whole sentences, of max_tokens at most",
    "chunks.group_by_columns": _NOT_NEEDED + "no text unit spans two documents",
    "chunks.prepend_metadata": "metadata stands in a column beside the text, not in it: name the "
    "fields in load_documents.metadata_columns",
    "chunks.chunk_size_includes_metadata": _NOT_NEEDED + "metadata takes no room in a text unit",
    "output_storage": _NOT_NEEDED + "`output` is a folder of its own, so that theirs stays as is",
    "output": _NOT_NEEDED + "`output` is a folder of its own, so that theirs stays as is",
    "storage": _NOT_NEEDED + "`output` is a folder of its own, so that theirs stays as is",
    "update_output_storage": _KEPT,
    "update_index_output": _KEPT,
    "update_index_storage": _KEPT,
    "table_provider": _NOT_NEEDED + "tables are Parquet files",
    "cache": _NOT_NEEDED + "every reply is kept in output/ledger.sqlite",
    "reporting": _NOT_NEEDED + "what a run has to say is printed; `status` tells the rest",
    "vector_store.vector_size": _NOT_NEEDED + "the model tells the length of its vectors; "
    "`dimensions` of the model asks for shorter ones",
    "vector_store": "vectors lie in output/lancedb, and no other store is known",
    "embed_text": _NOT_NEEDED + "text units, entities and reports are all embedded",
    "embeddings": _NOT_NEEDED + "text units, entities and reports are all embedded",
    "snapshots": "use `graphrag-index export`, which writes the graph for other programs",
    "embed_graph": "there are no vectors of the graph: finalize_graph.layout draws it without",
    "umap": _NOT_NEEDED + "finalize_graph.layout gives entities their x and y",
    "extract_graph.strategy": _NOT_NEEDED + "there is one way to extract",
    "entity_extraction.strategy": _NOT_NEEDED + "there is one way to extract",
    "extract_graph_nlp.normalize_edge_weights": _NOT_NEEDED + "weights always are associations",
    "extract_graph_nlp": _OWN_RULES,
    "prune_graph.lcc_only": _NOT_NEEDED + "every part of the graph is split",
    "prune_graph": _OWN_PRUNING,
    "cluster_graph.use_lcc": _NOT_NEEDED + "every part of the graph is split",
    "cluster_graph.strategy": "use create_communities.engine: microsoft for their implementation",
    "community_reports.strategy": _NOT_NEEDED + "there is one way to report",
    "summarize_descriptions.strategy": _NOT_NEEDED + "there is one way to summarize",
    "local_search.top_k_relationships": "use local_search.text_unit_share and report_share: "
    "relationships get the rest",
    "local_search.conversation_history_max_turns": "a question stands alone",
    "basic_search.text_unit_prop": _NOT_NEEDED + "text units are all that it is shown",
    "basic_search.conversation_history_max_turns": "a question stands alone",
    "global_search.data_max_tokens": _NOT_NEEDED + "max_context_tokens holds for each call",
    "global_search.map_max_length": _OWN_ANSWER,
    "global_search.reduce_max_length": _OWN_ANSWER,
    "global_search.map_max_tokens": _OWN_ANSWER,
    "global_search.reduce_max_tokens": _OWN_ANSWER,
    "global_search.concurrency": _NOT_NEEDED + "`concurrency` of a model says how many calls",
    "global_search.dynamic_search_use_summary": "reports are rated by what they say in full",
    "global_search.dynamic_search_num_repeats": "a report is rated once",
    "global_search.dynamic_search_keep_parent": "a report gives way to those on its parts",
    "global_search.dynamic_search_concurrent_coroutines": _NOT_NEEDED
    + "`concurrency` of a model says how many calls",
    "drift_search.concurrency": _NOT_NEEDED + "`concurrency` of a model says how many calls",
    "drift_search.primer_folds": _WHOLE_QUESTION,
    "drift_search": _WHOLE_QUESTION + "; local_search has shares and top_k of its own",
    "local_search.llm_max_tokens": _OWN_ANSWER,
    "local_search.temperature": "use `temperature` of the model",
    "local_search.top_p": "use `parameters` of the model",
    "local_search.n": _NOT_NEEDED + "one answer is asked for",
    "global_search.temperature": "use `temperature` of the model",
    "global_search.top_p": "use `parameters` of the model",
    "global_search.n": _NOT_NEEDED + "one answer is asked for",
}

# Which setting names the model of which steps and searches of ours; v3, then v2.
MODEL_OF: dict[str, str] = {
    "extract_graph.completion_model_id": "extract_graph.model",
    "summarize_descriptions.completion_model_id": "summarize_descriptions.model",
    "extract_claims.completion_model_id": "extract_covariates.model",
    "community_reports.completion_model_id": "create_community_reports.model",
    "extract_graph.model_id": "extract_graph.model",
    "summarize_descriptions.model_id": "summarize_descriptions.model",
    "extract_claims.model_id": "extract_covariates.model",
    "community_reports.model_id": "create_community_reports.model",
    "embed_text.embedding_model_id": "generate_text_embeddings.model",
    "embed_text.model_id": "generate_text_embeddings.model",
}
# The models that answer: ours are one for all searches, or the one that wrote the index.
ANSWERING = tuple(
    f"{search}_search.{key}"
    for search in ("local", "global", "drift", "basic")
    for key in ("completion_model_id", "chat_model_id")
)
# The models that embed questions: always the one that the index was made with.
EMBEDDING_QUESTIONS = tuple(
    f"{search}_search.embedding_model_id" for search in ("local", "drift", "basic")
)

# Keys that others look after, each with its first words: no line of their own.
ELSEWHERE = (
    *("completion_models", "embedding_models", "models", "llm", "embeddings.llm"),
    *("concurrent_requests", "workflows", "entity_extraction.llm", "claim_extraction.llm"),
    *("community_reports.llm", "summarize_descriptions.llm", "extract_claims.enabled"),
    *("claim_extraction.enabled", "input_storage.base_dir", "input.storage.base_dir"),
    *("input.base_dir", "input.file_pattern"),
)


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

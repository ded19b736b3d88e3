"""Small projects of Microsoft GraphRAG, as its versions write them; all texts are our own."""

from pathlib import Path

V3 = """\
completion_models:
  default_completion_model:
    model_provider: openai
    model: gpt-4.1-mini
    auth_method: api_key
    api_key: ${GRAPHRAG_API_KEY}
    call_args: {temperature: 0.3, top_p: 0.9, n: 1, max_completion_tokens: 4000}
    retry: {type: exponential_backoff, max_retries: 7}
    rate_limit: {type: sliding_window, period_in_seconds: 30, requests_per_period: 100}
  judge:
    model_provider: azure
    model: gpt-4.1
    api_base: https://mine.openai.azure.com
    api_version: 2024-12-01-preview
    azure_deployment_name: judge-4
    api_key: ${AZURE_KEY}
embedding_models:
  default_embedding_model:
    model_provider: openai
    model: text-embedding-3-small
    api_key: ${GRAPHRAG_API_KEY}
    call_args: {dimensions: 512}
concurrent_requests: 12
input: {type: csv, text_column: body, title_column: name, id_column: nr}
chunking: {type: tokens, size: 600, overlap: 60, encoding_model: o200k_base,
  prepend_metadata: [title, author]}
input_storage: {type: file, base_dir: texts}
output_storage: {type: file, base_dir: output}
cache: {type: json, storage: {type: file, base_dir: cache}}
vector_store: {type: lancedb, db_uri: output/lancedb, vector_size: 512}
embed_text: {embedding_model_id: default_embedding_model}
extract_graph:
  completion_model_id: default_completion_model
  prompt: prompts/extract_graph.txt
  entity_types: [ship, person]
  max_gleanings: 1
summarize_descriptions: {max_length: 200, prompt: prompts/summary.txt}
extract_claims: {enabled: true, description: Who owes whom money., max_gleanings: 0}
community_reports: {completion_model_id: judge, max_length: 900, max_input_length: 6000}
cluster_graph: {max_cluster_size: 12, use_lcc: true, seed: 3735928559}
snapshots: {graphml: true}
local_search: {text_unit_prop: 0.4, community_prop: 0.2, top_k_entities: 7,
  max_context_tokens: 9000, completion_model_id: judge}
global_search: {dynamic_search_max_level: 3, dynamic_search_threshold: 1, data_max_tokens: 12000}
drift_search: {n_depth: 1, drift_k_followups: 5, primer_folds: 2}
basic_search: {k: 15}
"""

V2 = """\
models:
  default_chat_model:
    type: azure_openai_chat
    auth_type: api_key
    api_key: sk-a-literal-key
    model: gpt-4o
    api_base: $AZURE_BASE
    api_version: 2024-05-01-preview
    deployment_name: my-gpt
    encoding_model: cl100k_base
    model_supports_json: true
    concurrent_requests: 25
    retry_strategy: native
    tokens_per_minute: auto
    requests_per_minute: 300
    reasoning_effort: low
  default_embedding_model:
    type: openai_embedding
    api_key: ${GRAPHRAG_API_KEY}
    model: text-embedding-3-small
vector_store: {default_vector_store: {type: lancedb, container_name: default}}
embed_text: {model_id: default_embedding_model, vector_store_id: default_vector_store}
input:
  storage: {type: file, base_dir: input}
  file_type: text
  file_pattern: '.*\\.(md|txt)$$'
  metadata: [author]
chunks: {size: 300, overlap: 200, group_by_columns: [id]}
output: {type: file, base_dir: output}
extract_graph: {model_id: default_chat_model, entity_types: [ship]}
extract_claims: {enabled: false, model_id: default_chat_model}
umap: {enabled: false}
local_search: {chat_model_id: default_chat_model, embedding_model_id: default_embedding_model}
"""

V1 = """\
encoding_model: cl100k_base
llm:
  api_key: ${GRAPHRAG_API_KEY}
  type: openai_chat
  model: gpt-4-turbo-preview
  model_supports_json: true
  max_tokens: 4000
  request_timeout: 180.0
  tokens_per_minute: 150000
parallelization: {stagger: 0.3, num_threads: 50}
async_mode: threaded
embeddings:
  async_mode: threaded
  llm: {type: openai_embedding, model: text-embedding-ada-002}
chunks: {size: 1200, overlap: 100, group_by_columns: [id]}
input: {type: file, file_type: text, base_dir: input, file_encoding: utf-8,
  file_pattern: '.*\\.txt$'}
storage: {type: file, base_dir: output}
entity_extraction: {prompt: prompts/entity_extraction.txt, entity_types: [ship], max_gleanings: 0}
claim_extraction: {enabled: true, description: Who owes whom money.}
community_reports: {prompt: prompts/community_report.txt, max_length: 2000}
local_search: {max_tokens: 5000}
global_search: {max_tokens: 6000, concurrency: 8}
"""

EXTRACTION = (
    "List who is named, as TUPLES of the types {entity_types}: "
    '("entity"<|>NAME<|>TYPE<|>description), ("relationship"<|>A<|>B<|>description<|>strength), '
    "with ## between and <|COMPLETE|> behind. Sets are written {{a}}.\n\nTEXT: {input_text}\n\n"
    "Tuples:\n"
)


def write(root: Path, settings: str, name: str = "settings.yaml", **files: str) -> Path:
    """Write a project: its settings, and files whose names have `__` for a slash."""
    for path, text in {name: settings, **files}.items():
        target = root / path.replace("__", "/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    return root

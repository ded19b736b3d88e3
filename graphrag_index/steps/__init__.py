"""The steps, one file each, named as the step. A workflow names them in order."""

STEPS = (
    "read_graph",
    "load_documents",
    "create_text_units",
    "extract_graph_nlp",
    "extract_graph",
    "resolve_entities",
    "summarize_descriptions",
    "finalize_graph",
    "normalize_values",
    "extract_covariates",
    "create_communities",
    "link_text_units",
    "create_community_reports_nlp",
    "create_community_reports",
    "generate_text_embeddings",
    "create_search_tables",
)

"""The built-in steps. A workflow is an ordered list of names of steps."""

# Name of a step → module of this package that defines the step.
STEPS = {
    "read_graph": "read_graph",
    "read_imported": "imported_index",
    "read_imported_vectors": "imported_index",
    "load_documents": "load_documents",
    "skip_imported": "imported_index",
    "create_text_units": "create_text_units",
    "extract_graph_nlp": "extract_graph_nlp",
    "extract_graph": "extract_graph",
    "add_imported": "imported_index",
    "add_imported_nlp": "imported_index",
    "resolve_entities": "resolve_entities",
    "summarize_descriptions": "summarize_descriptions",
    "finalize_graph": "finalize_graph",
    "normalize_values": "summarize_descriptions",
    "extract_covariates": "extract_covariates",
    "create_communities": "create_communities",
    "link_text_units": "finalize_graph",
    "create_community_reports_nlp": "create_community_reports_nlp",
    "create_community_reports": "create_community_reports",
    "generate_text_embeddings": "generate_text_embeddings",
    "create_search_tables": "generate_text_embeddings",
}

# The server in a container: `docker build -t graphrag-index .`, then `docker compose up`.
FROM python:3.12-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY graphrag_index graphrag_index
COPY graphrag_query graphrag_query
COPY graphrag_server graphrag_server
COPY graphrag_evaluation graphrag_evaluation
COPY graphrag_nlp graphrag_nlp
COPY workflows workflows
RUN python -m venv /opt/graphrag && /opt/graphrag/bin/pip install --no-cache-dir ".[serve,mcp,bucket]"

FROM python:3.12-slim
# The program needs no rights but to its volume.
RUN useradd --uid 10001 --create-home graphrag && install -d -o graphrag -g graphrag /data
COPY --from=build /opt/graphrag /opt/graphrag
ENV PATH=/opt/graphrag/bin:$PATH PYTHONUNBUFFERED=1
USER graphrag
WORKDIR /data
# The volume holds a project: settings.yaml, input/, output/ and the keys, server.sqlite.
VOLUME /data
EXPOSE 8321
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s CMD ["python", "-c", \
    "import urllib.request as r; r.urlopen('http://127.0.0.1:8321/health', timeout=4)"]
ENTRYPOINT ["graphrag-index"]
CMD ["serve", "--root", "/data", "--host", "0.0.0.0"]

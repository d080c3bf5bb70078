# heed in a container. CPU by default; FLAVOUR=gpu for NVIDIA (docker compose up heed-gpu builds that one).
# The same set-up as `make setup`, so there is one way to install heed.
FROM python:3.11-slim-bookworm

ARG FLAVOUR=cpu
ENV PIP_NO_CACHE_DIR=1 PYTHONUNBUFFERED=1

# libnuma1: vLLM for CPU loads it. gcc and libc6-dev: vLLM for GPU compiles small launchers when it starts.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends libnuma1 libtcmalloc-minimal4 $(test "$FLAVOUR" = cpu || echo gcc libc6-dev) \
    && rm -rf /var/lib/apt/lists/*

WORKDIR /opt/heed
# Packages first: this layer is built again only when a lock changes.
COPY pyproject.toml README.md LICENSE ./
COPY requirements requirements
COPY tools tools
RUN python tools/bootstrap.py --flavour "$FLAVOUR"
# WITH_CLUSTER=yes: Ray and the object stores' drivers, for several machines.
ARG WITH_CLUSTER=""
RUN test -z "$WITH_CLUSTER" || .venv/bin/pip install --no-deps -r requirements/cluster.txt

COPY storage storage
COPY engine engine
COPY bot bot
COPY evals evals
COPY bench bench

# Everything that heed writes lies in /data, a volume; the rest belongs to root and stays as it is.
RUN useradd --uid 10001 --no-create-home --home-dir /data/home heed \
    && install --directory --owner heed --group heed --mode 0700 /data /data/home
USER heed
ENV HOME=/data/home HEED_DATA_DIR=/data/heed PATH=/opt/heed/.venv/bin:$PATH
VOLUME /data

HEALTHCHECK --interval=15s --timeout=5s --start-period=120s --retries=4 \
    CMD ["/opt/heed/.venv/bin/python", "-c", "import os, urllib.request as u; u.urlopen('http://127.0.0.1:' + os.environ.get('HEED_HTTP_PORT', '8080') + '/healthz', timeout=4)"]
STOPSIGNAL SIGTERM
CMD ["/opt/heed/.venv/bin/heed", "run"]

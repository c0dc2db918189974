# The versions of constraints.txt, as `make` installs them.
#   docker build -t lpgnn .
#   docker run --rm -v "$PWD/runs:/lpgnn/runs" lpgnn train ARGS="dataset=mutag"
#   docker run --rm lpgnn test
FROM python:3.11-slim-bookworm
RUN apt-get update -q \
 && apt-get install -qy --no-install-recommends build-essential git procps \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /lpgnn
# What is installed changes seldom, so that a change of the sources builds in seconds.
COPY Makefile pyproject.toml constraints.txt README.md LICENSE ./
COPY .ci .ci
COPY src/lpgnn_cli/version.py src/lpgnn_cli/version.py
RUN make setup && rm -rf /root/.cache/pip
COPY . .
ENTRYPOINT ["make", "--no-print-directory"]
CMD ["train"]

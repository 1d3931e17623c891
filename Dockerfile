# An image in which `pyb up` and test clusters work without privileges: simulated nodes, memory or SQLite.
# Nodes with containers need user namespaces inside of the container (docker run --security-opt seccomp=unconfined).
#   docker build -t pybernetes . && docker run -p 6443:6443 pybernetes
FROM python:3.12-slim AS build
COPY . /source
RUN python -m pip wheel --no-deps --wheel-dir /wheels /source

FROM python:3.12-slim
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels \
    python -m pip install --no-cache-dir /wheels/*.whl && useradd --create-home pyb
USER pyb
WORKDIR /home/pyb
EXPOSE 6443
ENTRYPOINT ["pyb"]
CMD ["version"]

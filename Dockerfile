# An image for GPUs: docker build --tag bioptimus . ; with --build-arg EXTRA=cuda12, tpu or remote for others.
FROM python:3.12-slim
ARG EXTRA=cuda13
COPY pyproject.toml constraints.txt README.md LICENSE /source/
COPY bioptimus_jax /source/bioptimus_jax
COPY configs /source/configs
RUN pip install --no-cache-dir --constraint /source/constraints.txt "/source[$EXTRA,remote]"
# The libraries of CUDA come with pip; the driver is the host's.
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility XLA_PYTHON_CLIENT_PREALLOCATE=false
RUN useradd user && mkdir /runs && chown user /runs
USER user
WORKDIR /runs
ENTRYPOINT ["bioptimus"]

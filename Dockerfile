# The service as an image: no compiler, no root, nothing to write to but /data. deploy/requirements.lock says what is in it.
FROM python:3.13-slim AS build
WORKDIR /src
RUN python -m venv /opt/counterpoint
COPY deploy/requirements.lock deploy/requirements.lock
RUN /opt/counterpoint/bin/pip install --no-cache-dir --require-hashes --requirement deploy/requirements.lock
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN /opt/counterpoint/bin/pip install --no-cache-dir --no-deps . \
    && /opt/counterpoint/bin/python -m compileall -q /opt/counterpoint/lib

FROM python:3.13-slim
RUN groupadd --gid 10001 counterpoint \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /data --shell /usr/sbin/nologin counterpoint \
    && install --directory --owner=10001 --group=10001 --mode=0700 /data /keys /witness
COPY --from=build /opt/counterpoint /opt/counterpoint
ENV PATH="/opt/counterpoint/bin:$PATH" PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=3s --start-period=60s --retries=3 \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8000/ready', timeout=2)"]
ENTRYPOINT ["counterpoint"]
CMD ["serve", "--config", "/data/counterpoint.toml", "--host", "0.0.0.0"]

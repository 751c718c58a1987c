# The images, one target each:
#
#     docker build --target controller   -t registry.example.com/ml/longrun/controller:0.2.0 .     the controller of TrainingRuns
#     docker build --target learner      -t registry.example.com/ml/longrun/learner:0.2.0 .        learners, on CPU
#     docker build --target learner-cuda -t registry.example.com/ml/longrun/learner-cuda:0.2.0 .   the same with CUDA 13 for ONNX Runtime
#     docker build --target actor        -t registry.example.com/ml/longrun/actor:0.2.0 .          supervisors of actors
#     docker build --target sandbox      -t registry.example.com/ml/longrun/sandbox:0.2.0 .        what programs run in: Python, the tasks' public data
#     docker build --target sandbox-paper -t registry.example.com/ml/longrun/sandbox-paper:0.2.0 . the same with the packages of the paper's prompt
#
# `npm run release` builds them for amd64 and arm64, pushes and signs them.
#
# All run as a number that no user of the image has, on a read-only root file system; whatever they write goes to
# volumes. Answers (`prepared/private`) are in the learner's image alone. None has a compiler, npm or pip.
#
# Reproducible: bases and packages are pinned by digest or lock file, Debian's packages by the day of a snapshot, Python
# is compiled without time stamps. `docker build --build-arg SOURCE_DATE_EPOCH=0 --output type=image,rewrite-timestamp=true`
# or `buildah build --timestamp 0` gives the same bytes again.

# Indexes for amd64 and arm64. The same Debian is below both, so that Node finds the libraries that it was linked with.
ARG NODE_IMAGE=docker.io/library/node:24.21.0-bookworm-slim@sha256:0e0ff40c39bc087845bfb27465a0df4ea419520094bc35842ff83dd8cbe6f9b6
ARG DEBIAN_NAME=docker.io/library/debian:bookworm-20260918-slim
ARG DEBIAN_DIGEST=sha256:3783cc01769c7b2b1b83a5c5ad96c815348e28ed7da68e2e3687004faa906251
ARG DEBIAN_IMAGE=${DEBIAN_NAME}@${DEBIAN_DIGEST}
# What the images' labels say of them. org.opencontainers.image.source is not among them: the sources have no public
# address; whoever publishes images gives theirs, `docker build --label org.opencontainers.image.source=…`.
ARG VERSION=0.2.0
ARG REVISION=unknown

# --- Both bases, of the image's platform. They come first, because buildah takes `--platform` of one stage for those after it.
FROM ${NODE_IMAGE} AS node
FROM ${DEBIAN_IMAGE} AS debian

# --- What the lock file says, without what only development needs. npm runs on the builder's platform, where no emulator slows it.
FROM --platform=$BUILDPLATFORM ${NODE_IMAGE} AS dependencies
ARG TARGETARCH
WORKDIR /opt/longrun
COPY package.json package-lock.json .npmrc ./
RUN mkdir -p /usr/local/etc \
 && case $TARGETARCH in amd64) cpu=x64 ;; *) cpu=$TARGETARCH ;; esac \
 && printf 'os=linux\ncpu=%s\n' "$cpu" >>/usr/local/etc/npmrc \
 && npm ci --omit=dev --ignore-scripts --no-update-notifier \
 # ONNX Runtime ships its libraries for every platform; 250 MB of them are not this one's.
 && find node_modules/onnxruntime-node/bin -mindepth 3 -maxdepth 3 -type d \
      ! -path "*/linux/$cpu" -prune -exec rm -rf {} + \
 # Libraries for Bare, another JavaScript runtime, of every platform.
 && rm -rf node_modules/bare-*/prebuilds /root/.npm

# --- The same without what only learners need.
FROM dependencies AS controller-dependencies
RUN npm uninstall --no-save --omit=dev --ignore-scripts --no-audit --no-fund --no-update-notifier \
      onnxruntime-node koffi vega vega-lite @aws-sdk/client-s3 @huggingface/hub @huggingface/jinja @huggingface/tokenizers \
      @lezer/python adm-zip \
 && rm -rf /root/.npm

# --- And without what only the controller needs. At once: a second uninstallation would put back what the first removed.
FROM dependencies AS actor-dependencies
RUN npm uninstall --no-save --omit=dev --ignore-scripts --no-audit --no-fund --no-update-notifier \
      onnxruntime-node koffi vega vega-lite @aws-sdk/client-s3 @huggingface/hub @huggingface/jinja @huggingface/tokenizers \
      @lezer/python adm-zip \
      @kubernetes/client-node ajv \
 && rm -rf /root/.npm

# --- Python, as Debian builds it.
FROM debian AS python
# A day of snapshot.debian.org; empty: whatever the base's own sources give.
ARG DEBIAN_SNAPSHOT=20260918T000000Z
# The snapshot pins the versions.
# hadolint ignore=DL3008
RUN if [ -n "$DEBIAN_SNAPSHOT" ]; then \
      rm -f /etc/apt/sources.list.d/* && for suite in debian/bookworm debian-security/bookworm-security; do \
        echo "deb [check-valid-until=no] http://snapshot.debian.org/archive/${suite%%/*}/$DEBIAN_SNAPSHOT ${suite#*/} main"; \
      done >/etc/apt/sources.list; \
    fi \
 && apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends python3 \
 # What differs from build to build, and what compares a source's time with a compiled file's: times do not survive.
 && rm -rf /var/lib/apt/lists /var/cache/apt /var/cache/debconf /var/cache/ldconfig /var/log/* /var/lib/dpkg/*-old \
 && find /usr/lib/python3* -name __pycache__ -prune -exec rm -rf {} + \
 && python3 -m compileall -q -j 1 --invalidation-mode unchecked-hash /usr/lib/python3.*/

# --- Python that can install. Of it nothing but what it installs gets into an image.
FROM python AS pip
ARG DEBIAN_SNAPSHOT
# hadolint ignore=DL3008,DL3009
RUN apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends python3-venv \
 && python3 -m venv /opt/python

# --- The packages that programs may import: exact versions, checked by hash.
FROM pip AS programs
COPY actor/sandbox/requirements.txt /tmp/requirements.txt
RUN /opt/python/bin/python -m pip install --no-cache-dir --no-compile --no-input --disable-pip-version-check \
      --require-hashes --only-binary :all: --no-deps -r /tmp/requirements.txt
# `-B` and a read-only file system: what is not compiled here would be compiled at every start.
RUN cp -a /opt/python /opt/programs \
 && rm -rf /opt/programs/lib/python3*/site-packages/pip* /opt/programs/lib/python3*/site-packages/setuptools* \
      /opt/programs/lib/python3*/site-packages/pkg_resources /opt/programs/lib/python3*/site-packages/_distutils_hack \
      /opt/programs/lib/python3*/site-packages/distutils-precedence.pth /opt/programs/bin/pip* \
 && find /opt/programs -name __pycache__ -prune -exec rm -rf {} + \
 && python3 -m compileall -q -j 1 --invalidation-mode unchecked-hash -s /opt/programs -p /opt/python /opt/programs/lib

# --- The same for the packages of the paper's prompt, by one step that keeps no second copy of their 5 GB.
FROM pip AS paper-programs
COPY actor/sandbox/requirements-paper.txt /tmp/requirements.txt
RUN /opt/python/bin/python -m pip install --no-cache-dir --no-compile --no-input --disable-pip-version-check \
      --require-hashes --only-binary :all: --no-deps -r /tmp/requirements.txt \
 && rm -rf /opt/python/lib/python3*/site-packages/pip* /opt/python/lib/python3*/site-packages/setuptools* \
      /opt/python/lib/python3*/site-packages/pkg_resources /opt/python/lib/python3*/site-packages/_distutils_hack \
      /opt/python/lib/python3*/site-packages/distutils-precedence.pth /opt/python/bin/pip* \
 && find /opt/python -name __pycache__ -prune -exec rm -rf {} + \
 && python3 -m compileall -q -j 1 --invalidation-mode unchecked-hash /opt/python/lib

# --- The bundled tasks, read from their Python packages.
FROM programs AS tasks
COPY --from=node /usr/local/bin/node /usr/local/bin/node
COPY --from=dependencies /opt/longrun /opt/longrun
COPY proto/cache-folder.ts proto/errors.ts proto/folders.ts /opt/longrun/proto/
COPY learner/tasks /opt/longrun/learner/tasks
RUN for task in diamonds movie wage; do \
      node /opt/longrun/learner/tasks/prepare.ts --task "$task" --out /opt/longrun-tasks --python /opt/python/bin/python \
        --downloads /tmp/downloads || exit 1; \
      mkdir -p "/opt/public-tasks/$task/prepared" \
      && cp -a "/opt/longrun-tasks/$task/prepared/public" "/opt/public-tasks/$task/prepared/" || exit 1; \
    done \
 && chmod 0750 /opt/longrun-tasks/*/prepared/private && chmod 0640 /opt/longrun-tasks/*/prepared/private/*

# --- What programs run in, but for their packages.
FROM python AS sandbox-base
ARG VERSION
ARG REVISION
ARG DEBIAN_NAME
ARG DEBIAN_DIGEST
LABEL org.opencontainers.image.title="longrun sandbox" \
      org.opencontainers.image.description="What the programs of longrun's actors run in: Python, its packages, public data" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.base.name="$DEBIAN_NAME" \
      org.opencontainers.image.base.digest="$DEBIAN_DIGEST" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION"
COPY --from=tasks /opt/public-tasks /opt/longrun-tasks
COPY actor/sandbox /opt/longrun/actor/sandbox
RUN python3 -m compileall -q --invalidation-mode unchecked-hash /opt/longrun/actor/sandbox
USER 10002:10002
HEALTHCHECK --start-period=120s CMD ["test", "-S", "/sandbox/control.sock"]
CMD ["/opt/python/bin/python", "-s", "-B", "/opt/longrun/actor/sandbox/zygote.py", "--listen", "/sandbox/control.sock"]

# --- What programs run in.
FROM sandbox-base AS sandbox
COPY --from=programs /opt/programs /opt/python

# --- The same with the packages of the paper's prompt. LightGBM wants a library of Debian's.
FROM sandbox-base AS sandbox-paper
LABEL org.opencontainers.image.title="longrun sandbox, the paper's packages"
USER 0:0
# hadolint ignore=DL3008
RUN apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends libgomp1 \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt /var/cache/debconf /var/cache/ldconfig /var/log/* /var/lib/dpkg/*-old
COPY --from=paper-programs /opt/python /opt/python
USER 10002:10002
# Fails where one cannot be imported.
RUN /opt/python/bin/python -s -B -c "import bayes_opt, lightgbm, numpy, pandas, sklearn, statsmodels.api, timm, torch, torch_geometric.nn, torchvision, xgboost" \
 && rm -rf /tmp/torchinductor_*

# --- What ONNX Runtime needs to compute on NVIDIA GPUs, out of wheels: the provider, CUDA 13 and cuDNN 9. For amd64.
FROM pip AS cuda
COPY learner/cuda/requirements.txt /tmp/cuda.txt
RUN /opt/python/bin/python -m pip install --no-cache-dir --no-compile --no-input --disable-pip-version-check \
      --require-hashes --only-binary :all: --no-deps --target /tmp/cuda -r /tmp/cuda.txt \
 && mkdir /opt/cuda /opt/providers \
 && cp /tmp/cuda/nvidia/*/lib/lib*.so* /opt/cuda/ \
 && cp /tmp/cuda/onnxruntime/capi/libonnxruntime_providers_cuda.so \
      /tmp/cuda/onnxruntime/capi/libonnxruntime_providers_shared.so /opt/providers/ \
 && rm -rf /tmp/cuda
# Fails where one is missing. libcuda is the driver's, which the node's container runtime brings.
RUN LD_LIBRARY_PATH=/opt/cuda ldd /opt/providers/*.so /opt/cuda/*.so* >/tmp/libraries \
 && test -e /opt/cuda/libcudnn.so.9 \
 && awk '/not found/ && !/libcuda\.so\.1 / { print; missing = 1 } END { exit missing }' /tmp/libraries

# --- What controller, learner and supervisor have in common.
FROM debian AS service
ARG VERSION
ARG REVISION
ARG DEBIAN_NAME
ARG DEBIAN_DIGEST
LABEL org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.base.name="$DEBIAN_NAME" \
      org.opencontainers.image.base.digest="$DEBIAN_DIGEST" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION"
COPY --from=node /usr/local/bin/node /usr/local/bin/node
WORKDIR /opt/longrun
ENV NODE_ENV=production HOME=/tmp
USER 10001:10001

# --- The supervisor of an actor. It has neither answers nor what could read a cluster.
FROM service AS actor
LABEL org.opencontainers.image.title="longrun actor" \
      org.opencontainers.image.description="Leases executions from longrun's learner and runs them in sandboxes beside it"
COPY --from=actor-dependencies /opt/longrun ./
COPY LICENSE ./
COPY proto proto
COPY actor actor
# Every module is there: without arguments it ends with 2.
RUN node actor/main.ts; [ $? = 2 ]
# Of one that is started with `--metrics-listen 0.0.0.0:9400`, as the controller does.
HEALTHCHECK --start-period=60s CMD ["node", "--eval", "fetch('http://127.0.0.1:9400/metrics').then((it) => process.exit(it.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "/opt/longrun/actor/main.ts"]

# --- The controller.
FROM service AS controller
LABEL org.opencontainers.image.title="longrun controller" \
      org.opencontainers.image.description="Reconciles TrainingRuns: reinforcement learning of machine-learning-engineering agents"
COPY --from=controller-dependencies /opt/longrun ./
COPY LICENSE ./
COPY crds crds
COPY proto proto
COPY controller controller
RUN node --eval 'for (const it of ["controller-command", "smoke-test", "release-runs"]) import("/opt/longrun/controller/cli/" + it + ".ts")'
HEALTHCHECK --start-period=60s CMD ["node", "--eval", "fetch('http://127.0.0.1:8080/healthz').then((it) => process.exit(it.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "/opt/longrun/controller/cli.ts", "controller"]

# --- The learner.
FROM service AS learner
LABEL org.opencontainers.image.title="longrun learner" \
      org.opencontainers.image.description="Trains the policy of a TrainingRun with ONNX Runtime"
COPY --from=dependencies /opt/longrun ./
# Answers are for the group 10003 alone, which learners' pods have.
COPY --from=tasks --chown=0:10003 /opt/longrun-tasks /opt/longrun-tasks
COPY LICENSE ./
COPY manifests/quickstart manifests/quickstart
COPY crds crds
COPY proto proto
COPY learner learner
RUN node learner/main.ts; [ $? = 2 ]
HEALTHCHECK --start-period=300s CMD ["node", "--eval", "fetch('http://127.0.0.1:9400/healthz').then((it) => process.exit(it.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "/opt/longrun/learner/main.ts"]

# --- The learner with CUDA.
FROM learner AS learner-cuda
LABEL org.opencontainers.image.title="longrun learner with CUDA" \
      org.opencontainers.image.description="Trains the policy of a TrainingRun with ONNX Runtime on an NVIDIA GPU"
COPY --from=cuda /opt/cuda /opt/cuda
# Where ONNX Runtime looks for them: beside its own library.
COPY --from=cuda /opt/providers/ node_modules/onnxruntime-node/bin/napi-v6/linux/x64/
ENV LD_LIBRARY_PATH=/opt/cuda NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility

#!/usr/bin/env bash
# setup.sh      installs what `make test` needs beside Go: models, a C compiler for the race detector, QEMU for arm64
#
# Programs are installed only as root and in CI. Elsewhere a missing one is named, and the tests that need it are left out.
set -euo pipefail
cd "$(dirname "$0")"

if ! ./models.sh smollm2 gemma3 vocabularies; then
  [ "${CI:-}" != true ] || exit 1
  echo "setup.sh: tests that need a missing model are left out" >&2
fi

missing=()
command -v cc >/dev/null || missing+=(gcc libc6-dev)
command -v qemu-aarch64-static >/dev/null || command -v qemu-aarch64 >/dev/null || missing+=(qemu-user-static)
[ ${#missing[@]} -gt 0 ] || exit 0
if [ "${CI:-}" = true ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  apt-get update -qq >&2
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
else
  echo "setup.sh: not installed: ${missing[*]}" >&2
fi

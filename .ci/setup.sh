#!/usr/bin/env bash
# setup.sh      installs what `make test` needs beside Go: models, a C compiler for the race detector, QEMU for arm64, and
#               what checks and runs GPU kernels on a CPU
#
# Programs are installed only as root and in CI. Elsewhere a missing one is named, and the tests that need it are left out.
set -euo pipefail
cd "$(dirname "$0")"

if ! ./models.sh smollm2 gemma3 vocabularies; then
  [ "${CI:-}" != true ] || exit 1
  echo "setup.sh: tests that need a missing model are left out" >&2
fi

# file NAME...  whether one of the files is there.
file() { compgen -G "$1" >/dev/null || { [ $# -gt 1 ] && file "${@:2}"; }; }

missing=()
command -v cc >/dev/null || missing+=(gcc libc6-dev)
command -v qemu-aarch64-static >/dev/null || command -v qemu-aarch64 >/dev/null || missing+=(qemu-user-static)
command -v spirv-val >/dev/null || missing+=(spirv-tools)
command -v clang-19 >/dev/null || missing+=(clang-19)
file '/usr/lib/*/libvulkan.so.1' '/usr/lib*/libvulkan.so.1' || missing+=(libvulkan1)
file '/usr/share/vulkan/icd.d/lvp_icd*.json' || missing+=(mesa-vulkan-drivers)
file '/usr/share/vulkan/explicit_layer.d/VkLayer_khronos_validation.json' || missing+=(vulkan-validationlayers)
if [ ${#missing[@]} -gt 0 ]; then
  if [ "${CI:-}" = true ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get update -qq >&2
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
  else
    echo "setup.sh: not installed: ${missing[*]}" >&2
  fi
fi

if ! ./gputools.sh; then
  [ "${CI:-}" != true ] || exit 1
  echo "setup.sh: tests that need a missing tool are left out" >&2
fi

#!/usr/bin/env bash
# gputools.sh      fetches what checks and runs GPU kernels and is no package of the system, unless it is there already
#
#   cuda          NVIDIA's ptxas, cuobjdump and nvdisasm, which come as Python packages under NVIDIA's licence
#   swiftshader   SwiftShader, a Vulkan driver for CPUs: two files of Debian's package of Chromium's common files
#
# They lie in tools/ of swizzle's folder in the user's cache folder. They are large: only in CI, and with SWIZZLE_TOOLS=1,
# are they fetched. Elsewhere what is missing is named.
set -euo pipefail
cd "$(dirname "$0")"

cuda=13.5.37
tools=${XDG_CACHE_HOME:-$HOME/.cache}/swizzle/tools

fail() { echo "gputools.sh: $*" >&2; exit 1; }

have_cuda() { [ -d "$tools/cuda/nvidia_cuda_cuobjdump-$cuda.dist-info" ]; }
have_swiftshader() { [ -f "${SWIZZLE_SWIFTSHADER_ICD:-}" ] || [ -f "$tools/swiftshader/vk_swiftshader_icd.json" ] || [ -f /usr/lib/chromium/vk_swiftshader_icd.json ]; }

missing=()
have_cuda || missing+=(cuda)
have_swiftshader || missing+=(swiftshader)
[ ${#missing[@]} -gt 0 ] || exit 0
if [ "${CI:-}" != true ] && [ "${SWIZZLE_TOOLS:-}" != 1 ]; then
  echo "gputools.sh: not installed: ${missing[*]} (SWIZZLE_TOOLS=1 installs them into $tools)" >&2
  exit
fi

mkdir -p "$tools"
work=$(mktemp -d "$tools/.part-XXXXXX")
trap 'rm -rf "$work"' EXIT
venv=$tools/.venv wanted="NVIDIA's tools"
. ./pip.sh

# keep NAME puts a folder of $work among the tools, in place of an older one.
keep() {
  if [ -e "$tools/$1" ]; then mv "$tools/$1" "$work/old-$1"; fi
  mv "$work/$1" "$tools/$1"
}

cuda() {
  echo "fetching NVIDIA's tools $cuda" >&2
  PIP_ROOT_USER_ACTION=ignore pip install --quiet --disable-pip-version-check --no-deps --no-compile --target "$work/cuda" \
    "nvidia-cuda-nvcc==$cuda" "nvidia-cuda-nvdisasm==$cuda" "nvidia-cuda-cuobjdump==$cuda" >&2 || fail "pip could not install NVIDIA's tools $cuda"
  "$work/cuda/nvidia/cu13/bin/ptxas" --version >/dev/null || fail "ptxas $cuda does not run here"
  keep cuda
}

download() { (cd "$work" && apt-get download -qq -o APT::Sandbox::User= chromium-common >&2); }

swiftshader() {
  echo "fetching SwiftShader" >&2
  command -v apt-get >/dev/null || fail "SwiftShader is fetched by apt-get; name its file by SWIZZLE_SWIFTSHADER_ICD"
  download 2>/dev/null || { [ "$(id -u)" = 0 ] && apt-get update -qq >&2 && download; } || fail "apt-get could not download chromium-common"
  dpkg-deb -x "$work"/chromium-common_*.deb "$work/chromium"
  mkdir "$work/swiftshader"
  mv "$work"/chromium/usr/lib/chromium/{libvk_swiftshader.so,vk_swiftshader_icd.json} "$work/swiftshader/"
  keep swiftshader
}

for name in "${missing[@]}"; do "$name"; done

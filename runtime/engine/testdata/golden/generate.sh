#!/usr/bin/env bash
# generate.sh LLAMA_CPP BUILD MODEL.gguf [NAME]: rebuilds NAME.bin and NAME.json (default smollm2) beside this script.
#
#   LLAMA_CPP  a source tree of llama.cpp (the headers)
#   BUILD      its build folder, with bin/llama-quantize and libllama
#
# The committed files come from llama.cpp 0c1e57098 (the tree in llama-cpp-python 0.3.36) built with GGML_NATIVE on an AVX-512
# machine. Another CPU or commit sums in another order and gives other last digits: replace both files together.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source=$1 build=$2 model=$3 name=${4:-smollm2}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$build/bin/llama-quantize" --allow-requantize "$model" "$work/f32.gguf" F32 >"$work/quantize.log" 2>&1 || { tail -n 3 "$work/quantize.log" >&2; exit 1; }
lib=$(dirname "$(find "$build" -name 'libllama.so' | head -n 1)")
${CXX:-c++} -std=c++17 -O2 -Wall -Wextra -I"$source/include" -I"$source/ggml/include" "$here/generate.cpp" -o "$work/generate" \
  -L"$lib" -lllama -lggml -lggml-base -Wl,-rpath,"$lib"
"$work/generate" "$work/f32.gguf" "$model" "$work/out.bin" "$work/out.json" "llama.cpp 0c1e57098, CPU, GGML_NATIVE" \
  "$here"/texts/{prose,code,dialogue,languages,manual,science}.txt
mv "$work/out.bin" "$here/$name.bin"
mv "$work/out.json" "$here/$name.json"

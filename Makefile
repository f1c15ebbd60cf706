# make run      answers a question with a small model, which it fetches first
# make test     every check there is; make lint, unit, race, v3, arm64 and check are its parts
# make generate writes generated/ anew

export CGO_ENABLED = 0
export SWIZZLE_TEST_MODELS ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/swizzle/models
export PROMPT ?= Name the capital of France.

STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2
MODEL ?= $(SWIZZLE_TEST_MODELS)/SmolLM2-135M-Instruct.Q4_1.gguf

# Packages with goroutines that share memory.
RACE = ./ir/interp/... ./runtime/device/... ./runtime/dispatch/... ./runtime/engine/... ./serve/...
# Packages whose floating-point results a compiler could change: by fusing, on arm64 and on GOAMD64=v3.
NUMERIC = ./ir/canon/... ./ir/mathx/... ./ir/ops/... ./backends/portable/... ./gen/conform/... ./runtime/sample/... ./runtime/engine/...

.PHONY: build run bench generate check setup lint unit race v3 arm64 test clean

build:
	go build -trimpath -o bin/swizzle ./cmd/swizzle

run: build model
	@bin/swizzle run -m "$(MODEL)" -p "$$PROMPT" --temp 0

bench: build model
	bin/swizzle bench -m "$(MODEL)"

.PHONY: model
model:
	@test -f "$(MODEL)" || .ci/models.sh smollm2

generate:
	go generate ./...

# check proves that generated/ is what the generator writes.
check:
	rm -rf generated
	go generate ./...
	git diff --exit-code --stat -- generated
	@test -z "$$(git status --porcelain -- generated)" || { git status --short -- generated; exit 1; }

test: setup lint unit race v3 arm64 check

setup:
	.ci/setup.sh

lint:
	go vet ./...
	go run $(STATICCHECK) ./...
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); exit 1; }

unit:
	go test ./...

race:
	@if command -v cc >/dev/null; then set -x; CGO_ENABLED=1 go test -race -short $(RACE); \
	else echo "race: left out, there is no C compiler"; test "$$CI" != true; fi

v3:
	@if grep -qw avx2 /proc/cpuinfo 2>/dev/null; then set -x; GOAMD64=v3 go test -short $(NUMERIC); \
	else echo "v3: left out, this CPU isn't known to have AVX2"; test "$$CI" != true; fi

arm64:
	@if qemu=$$(command -v qemu-aarch64-static || command -v qemu-aarch64); then set -x; GOARCH=arm64 go test -short -exec "$$qemu" $(NUMERIC); \
	else echo "arm64: left out, there is no QEMU user emulation"; test "$$CI" != true; fi

clean:
	rm -rf bin

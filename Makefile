# make run      answers a question with a small model, which it fetches first
# make test     every check there is; make lint, unit, race, gc, v3, arm64 and check are its parts
# make generate writes generated/ anew
# make figures  assembles the PTX kernels and records their registers and instructions, which the report shows

export CGO_ENABLED = 0
export SWIZZLE_TEST_MODELS ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/swizzle/models
export PROMPT ?= Name the capital of France.

STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2
MODEL ?= $(SWIZZLE_TEST_MODELS)/SmolLM2-135M-Instruct.Q4_1.gguf

# Packages with goroutines that share memory.
RACE = ./gen/conform/... ./ir/interp/... ./runtime/device/... ./runtime/dispatch/... ./runtime/engine/... ./serve/...
# Packages whose floating-point results a compiler could change by fusing, as it may on arm64 and with GOAMD64=v3. What
# they compute on arm64 is emulated, which is slow; there the check of the kernels stands for the engine's tests.
NUMERIC = ./ir/canon/... ./ir/mathx/... ./gen/conform/... ./runtime/sample/...
V3 = $(NUMERIC) ./ir/ops/... ./backends/portable/... ./runtime/engine/...

.PHONY: build run bench generate figures check setup lint unit race gc v3 arm64 test clean

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

figures: generate
	go test -count=1 -run PTXAssembles ./gen/conform -figures
	go generate ./...

# check proves that generated/ is what the generator writes.
check:
	rm -rf generated
	go generate ./...
	git diff --exit-code --stat -- generated
	@test -z "$$(git status --porcelain -- generated)" || { git status --short -- generated; exit 1; }

test: setup lint unit race gc v3 arm64 check

setup:
	.ci/setup.sh

lint:
	go vet ./...
	go run $(STATICCHECK) ./...
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); exit 1; }

# Tests that were left out are named and counted; in CI what they need must be there.
unit:
	@log=$$(mktemp); go test -v ./... >$$log 2>&1; status=$$?; \
	if [ $$status = 0 ]; then grep -E '^(ok|\?)' $$log; else cat $$log; fi; \
	grep -E -B1 '^ *--- SKIP' $$log; echo "$$(grep -cE '^ *--- SKIP' $$log) tests skipped"; rm -f $$log; exit $$status

race:
	@if command -v cc >/dev/null; then set -x; CGO_ENABLED=1 go test -race -short $(RACE); \
	else echo "race: left out, there is no C compiler"; test "$$CI" != true; fi

# gc runs the kernels while the garbage collector runs all the time, which would find memory that they hold wrongly.
gc:
	GOGC=1 go test -count=1 -short ./gen/conform

v3:
	@if grep -qw avx2 /proc/cpuinfo 2>/dev/null; then set -x; GOAMD64=v3 go test -short $(V3); \
	else echo "v3: left out, this CPU isn't known to have AVX2"; test "$$CI" != true; fi

arm64:
	@if qemu=$$(command -v qemu-aarch64-static || command -v qemu-aarch64); then set -ex; export GOARCH=arm64; \
	go test -short -exec "$$qemu" $(NUMERIC); go test -run KernelsCheck -exec "$$qemu" ./cmd/swizzle; \
	else echo "arm64: left out, there is no QEMU user emulation"; test "$$CI" != true; fi

clean:
	rm -rf bin

# The commands of the project. Each does its own set-up: packages, build, model.
#   make serve [MODEL=path.gguf] [PORT=8080] [ARGS="--threads 4"]     an OpenAI-compatible server
#   make chat  [MODEL=path.gguf]                                      a conversation in the terminal
#   make build     build/release/unisono
#   make test      everything that can be shown on this machine
#   make bench     the speed of the kernels and of the whole
#   make asan, make tsan     the unit tests under sanitizers
#   make soak      random requests against the engine and the server for minutes: same bits, nothing leaks
#   make fuzz      each fuzz target for FUZZ_SECONDS (600)
#   make format    clang-format over the sources
MODEL ?=
PORT ?= 8080
ARGS ?=
FUZZ_SECONDS ?= 600

.PHONY: help build serve chat test bench asan tsan soak fuzz format
.DEFAULT_GOAL := help

help:
	@sed -n '2,/^MODEL/{s/^#  \{0,1\}//p}' Makefile

build:
	@tools/setup.sh build
	@tools/build.sh release unisono

serve: build
	@model="$(MODEL)"; [ -n "$$model" ] || model=$$(tools/get_model.sh) || exit 1; \
	exec build/release/unisono serve "$$model" --port $(PORT) $(ARGS)

chat: build
	@model="$(MODEL)"; [ -n "$$model" ] || model=$$(tools/get_model.sh) || exit 1; \
	exec build/release/unisono chat "$$model" $(ARGS)

test:
	@tools/setup.sh build
	@tools/test.sh

bench: build
	@tools/setup.sh bench
	@tools/bench.sh $(MODEL)

asan tsan:
	@tools/setup.sh build
	@tools/sanitize.sh $@

soak:
	@tools/setup.sh build
	@tools/soak.sh

fuzz:
	@tools/setup.sh build fuzz
	@FUZZ_SECONDS=$(FUZZ_SECONDS) tools/fuzz.sh

format:
	@tools/setup.sh format
	@git ls-files '*.h' '*.cpp' | xargs clang-format-14 -i

# One command for each thing that is done with this tree; `make help` lists them. The work is done by scripts/.

SHELL := /bin/bash
CARGO ?= cargo
TARGET := $(or $(CARGO_TARGET_DIR),target)
VENV := build/venv/bin
# One compilation of the kernels serves every profile.
export CVC_KERNEL_CACHE := $(CURDIR)/build/kernels

.DEFAULT_GOAL := help
.PHONY: help build test test-long demo gpu-bundle bench-gpu header fmt nvcc venv clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build the release library (target/release/libcvc.so, libcvc.a) and check include/
	$(CARGO) build --release --locked
	scripts/check_header.sh release

test: ## set up what is missing, then run every check and test
	scripts/test.sh

test-long: ## the tests that take long: ignored and long ones, the emulated GPU, the sanitizers
	scripts/test_long.sh

demo: ## show a real video going through libcvc; ARGS="--frames 500" and such reach the program
	@scripts/demo.sh $(ARGS)

gpu-bundle: ## collect into build/gpu all that a machine with a GPU needs to run the tests
	scripts/gpu_bundle.sh

bench-gpu: gpu-bundle ## on a machine with a GPU: time operators and calls beside the rivals found here
	build/gpu/run.sh bench

header: ## write include/cvc.h anew
	CVC_BLESS=1 $(CARGO) test --locked --quiet --test header

fmt: venv ## format Rust, Python, C, C++ and CUDA sources
	$(CARGO) fmt
	$(VENV)/ruff format .
	$(VENV)/ruff check --fix .
	git ls-files '*.c' '*.cc' '*.cpp' '*.cu' '*.cuh' '*.h' '*.hpp' ':!include/cvc.h' | xargs -r $(VENV)/clang-format -i

nvcc: ## install CUDA's compiler into build/nvcc, for the device kernels
	@scripts/setup.sh nvcc

venv: ## make build/venv with the Python packages that tests and tools need
	@scripts/setup.sh venv

clean: ## remove what was built; the tools in build/venv and build/nvcc stay
	$(CARGO) clean
	rm -rf build/cmake build/test-cmake build/c_tests build/install build/kernels build/emulated_gpu build/logs build/gpu build/gpu-*

# What can be made here; `make help` lists it. A new machine needs go, python3, git and make; a target that needs more
# says so, and what it skipped.

SHELL       := /bin/sh
GO          ?= go
VERSION     ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS     := -s -w -X main.version=$(VERSION)
BUILDFLAGS  := -trimpath -ldflags '$(LDFLAGS)'

# The tools that check the code, by version. They are compiled into build/tools, once.
GOLANGCI    := v2.15.0
VULNCHECK   := v1.9.0
TOOLS       := $(CURDIR)/build/tools

# Where the manifests that the conformance suites run lie; without them those suites are skipped.
CONFORMANCE ?= ../shared/conformance
# Scripts that bring up a Kubernetes on this machine, for the suites that need one where KUBECONFIG is not set.
CLUSTER     ?= ../shared/cluster
# A program that serves a folder as an object store, for the manifests that need one; compiled once.
S3          ?= $(TOOLS)/versitygw
VERSITYGW   := v1.8.0
# More for the conformance program: ARGS='-run loops -suite argo'.
ARGS        ?=
# How long each fuzzer runs.
FUZZTIME    ?= 10s
# How many times the crash test kills sluice.
KILLS       ?= 30
# The packages whose concurrency matters, for the race detector.
RACE        := ./internal/engine/... ./internal/runner/... ./internal/hook/... ./internal/backend/... ./internal/store/... ./pkg/...

.DEFAULT_GOAL := help

##@ Everyday

.PHONY: help
help: ## list the targets
	@awk 'BEGIN {FS = ":.*## "} \
	  /^##@/ {printf "\n%s\n", substr($$0, 5)} \
	  /^[a-zA-Z_-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## compile bin/sluice and bin/sluice-executor (static)
	CGO_ENABLED=0 $(GO) build $(BUILDFLAGS) -o bin/ ./cmd/...

.PHONY: demo
demo: build ## run a real pipeline with a hook plugin, here, twice
	@examples/demo/run

.PHONY: test
test: ## unit tests, property tests and the test of the import rules
	@$(GO) test -json ./... | $(GO) run ./test/report -name test

##@ Checks

.PHONY: lint
lint: $(TOOLS)/golangci-lint-$(GOLANGCI) ## gofmt, go vet and golangci-lint
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); \
	  if [ -n "$$unformatted" ]; then echo "not formatted by gofmt:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(TOOLS)/golangci-lint-$(GOLANGCI) run --timeout 20m

.PHONY: vulncheck
vulncheck: $(TOOLS)/govulncheck-$(VULNCHECK) ## known vulnerabilities of what is linked in (needs the vulnerability database)
	@out=$$($(TOOLS)/govulncheck-$(VULNCHECK) ./... 2>&1); code=$$?; echo "$$out"; \
	  case "$$out" in \
	  *"fetching vulnerabilities"*|*"dial tcp"*|*"no such host"*) echo "vulncheck: the vulnerability database cannot be reached from here"; \
	    echo "vulncheck: 0 passed, 0 failed, 1 skipped";; \
	  *) exit $$code;; \
	  esac

.PHONY: generate
generate: ## write generated files anew
	$(GO) generate ./...

.PHONY: crds
crds: ## write deploy/crds anew from the Go types
	$(GO) generate ./internal/crd

.PHONY: verify
verify: generate ## generated files and go.mod are as they should be
	$(GO) mod tidy -diff
	@git diff --exit-code -- . || { echo "make verify: the files above change when generated anew; commit the result"; exit 1; }

.PHONY: race
race: ## the concurrent packages under the race detector (needs a C compiler)
	@$(GO) test -race -json $(RACE) | $(GO) run ./test/report -name race

.PHONY: fuzz
fuzz: ## every fuzzer for FUZZTIME each
	@FUZZTIME=$(FUZZTIME) GO=$(GO) test/fuzz.sh

##@ Whole-program tests

.PHONY: conformance
conformance: build ## run the manifests of CONFORMANCE and compare with what the peers did
	@$(GO) run ./test/conformance -corpus $(CONFORMANCE) -sluice bin/sluice $(ARGS)

.PHONY: crash
crash: build ## kill -9 at KILLS random moments, resume after each: nothing is lost, nothing runs twice
	@SLUICE_CRASH_KILLS=$(KILLS) $(GO) test -tags whole -count=1 -timeout 20m -json ./test/crash | $(GO) run ./test/report -name crash

.PHONY: hooks
hooks: build ## the Python plugin against a real run: placeholders, reuse, pending, a plugin killed midway, bad answers
	@$(GO) test -tags whole -count=1 -timeout 20m -json ./test/hooks | $(GO) run ./test/report -name hooks

.PHONY: containers
containers: build ## ten of those manifests in containers by podman, from images packed here
	@$(GO) run ./test/conformance -corpus $(CONFORMANCE) -sluice bin/sluice -suite argo -class local -runtime podman -n 10 \
	  -name containers -doc "" -out build/containers.json -parallel 2 $(ARGS)

.PHONY: conformance-kube
conformance-kube: build $(S3) ## the Argo manifests as Workflow objects on a cluster: that of KUBECONFIG, or one that CLUSTER's scripts bring up
	@$(GO) run ./test/conformance -corpus $(CONFORMANCE) -cluster $(CLUSTER) -sluice bin/sluice -suite kube \
	  -out build/conformance-kube.json -timeout 3m -s3 $(S3) $(ARGS)

.PHONY: conformance-kube-kfp
conformance-kube-kfp: build ## compiled pipelines as Workflow objects on a cluster; three of 17 cannot pass, see docs/conformance.md
	@$(GO) run ./test/conformance -corpus $(CONFORMANCE) -cluster $(CLUSTER) -sluice bin/sluice -suite kube-kfp \
	  -out build/conformance-kube-kfp.json -timeout 3m -percent 80 $(ARGS)

.PHONY: e2e
e2e: build ## hooks, crashes and the peers' own clients on a cluster; ARGO_CLI names upstream's argo, if it is to be tried
	@CLUSTER=$(abspath $(CLUSTER)) CONFORMANCE=$(abspath $(CONFORMANCE)) $(GO) test -tags whole -count=1 -timeout 15m -json ./test/e2e | $(GO) run ./test/report -name e2e

.PHONY: readme
readme: build ## run every command that the README shows, and every example
	@$(GO) test -tags whole -count=1 -timeout 10m -json ./test/readme ./test/examples | $(GO) run ./test/report -name readme

.PHONY: bench
bench: build ## engine benchmarks, and the local overhead of a task beside xargs, make and kfp.local
	$(GO) test -run '^$$' -bench . -benchmem ./internal/engine/...
	$(GO) run ./test/bench -sluice bin/sluice $(ARGS)

##@ Images

# What builds images, and their names.
CONTAINER   ?= $(shell command -v podman || command -v docker)
IMAGE_TAG   ?= $(VERSION)
CA_BUNDLE   ?= /etc/ssl/certs/ca-certificates.crt

.PHONY: images
images: build ## the images sluice and sluice-executor, from scratch (needs podman or docker, and this machine's CA_BUNDLE)
	@[ -n "$(CONTAINER)" ] || { echo "make images: neither podman nor docker is here"; exit 1; }
	rm -rf build/image && mkdir -p build/image
	cp bin/sluice bin/sluice-executor build/image/
	cp -L $(CA_BUNDLE) build/image/ca-certificates.crt
	$(CONTAINER) build -f deploy/images/sluice.Dockerfile -t sluice:$(IMAGE_TAG) build/image
	$(CONTAINER) build -f deploy/images/sluice-executor.Dockerfile -t sluice-executor:$(IMAGE_TAG) build/image

##@ Housekeeping

.PHONY: clean
clean: ## remove bin/ and build/
	rm -rf bin build

.PHONY: tools
tools: $(TOOLS)/golangci-lint-$(GOLANGCI) $(TOOLS)/govulncheck-$(VULNCHECK) ## compile the tools that check the code

$(TOOLS)/golangci-lint-$(GOLANGCI):
	@mkdir -p $(TOOLS)
	GOBIN=$(TOOLS)/new GOFLAGS= $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI)
	mv $(TOOLS)/new/golangci-lint $@

$(TOOLS)/versitygw:
	@mkdir -p $(TOOLS)
	GOBIN=$(TOOLS)/new GOFLAGS= $(GO) install github.com/versity/versitygw/cmd/versitygw@$(VERSITYGW)
	mv $(TOOLS)/new/versitygw $@

$(TOOLS)/govulncheck-$(VULNCHECK):
	@mkdir -p $(TOOLS)
	GOBIN=$(TOOLS)/new GOFLAGS= $(GO) install golang.org/x/vuln/cmd/govulncheck@$(VULNCHECK)
	mv $(TOOLS)/new/govulncheck $@

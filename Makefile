# `make` alone explains itself. `make dev` needs Go alone. `make test` needs Go, make, a C compiler (for the race
# detector) and python3 (for pip); it installs the Redis servers and Apache Kafka that the tests run against, and a JDK
# and Maven for Kafka and Node.js where they are missing.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c

BIN      := $(CURDIR)/bin
LINT     := $(BIN)/golangci-lint
LINT_PKG := github.com/golangci/golangci-lint/v2/cmd/golangci-lint
RETRY    := $(CURDIR)/scripts/retry.sh
# Nested modules with code of ours. `go build ./...` does not enter them; these targets do, as soon as they exist.
NESTED   := $(patsubst %/go.mod,%,$(wildcard bench/go.mod bench/deploycheck/go.mod))
GOFILES  := find . \( -path ./bin -o -path ./.cache -o -name testdata -o -name .git \) -prune -o -name '*.go' -print

TEST_FLAGS ?=
# A package that hangs is ended; a slow machine is not punished.
TIMEOUT    ?= 40m
# Tests against real servers mostly wait, so more of them may run at once than there are processors.
PARALLEL   ?= 6
# Packages tested at once. Most tests wait for servers, so that two of them leave two cores idle for a quarter of the time.
PACKAGES   ?= 4
# The longest of them begin first, so that none of them is left alone at the end.
LONGEST    := ./driver/redis ./driver/kafka ./driver/disk ./driver/redisstream
FUZZTIME   ?= 10s
START      := $(shell date +%s)

export GOFLAGS := $(strip $(shell go env GOFLAGS) -mod=readonly)

.NOTPARALLEL:
.PHONY: help dev setup build vet fmt fmt-check lint arch test cover fuzz vuln generate bench bench-compare torture mutants soak console console-pictures test-console-all test-kafka test-failover test-failpoints

help: ## Show what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

dev: ## Run an embedded broker with demo traffic, nothing else needed
	go run ./cmd/ferry dev

setup: ## Download modules and servers, build the pinned tools into ./bin (once)
	@start=$$(date +%s); \
	$(RETRY) go mod download; \
	for m in $(NESTED); do (cd $$m && $(RETRY) go mod download); done; \
	scripts/servers.sh; \
	scripts/kafka.sh; \
	scripts/node.sh >/dev/null; \
	scripts/deno.sh >/dev/null; \
	scripts/mypy.sh >/dev/null; \
	scripts/chromium.sh >/dev/null; \
	scripts/console.sh --version >/dev/null; \
	$(MAKE) --no-print-directory $(LINT); \
	echo "setup took $$(( $$(date +%s) - start ))s"

# The tools are a module of their own, so that the library's users never meet their dependencies.
$(LINT): tools/go.mod tools/go.sum
	@echo "building golangci-lint (about a minute, once)"
	cd tools && $(RETRY) go list -deps -f '{{""}}' $(LINT_PKG) >/dev/null
	cd tools && go build -o $(LINT) $(LINT_PKG)

build: ## Compile everything
	go build ./...
	@for m in $(NESTED); do echo "go build ./... in $$m"; (cd $$m && go build ./...); done

vet: ## Run go vet
	go vet ./...
	@for m in $(NESTED); do echo "go vet ./... in $$m"; (cd $$m && go vet ./...); done

fmt: ## Format all Go files
	@$(GOFILES) | xargs gofmt -w

fmt-check: # fails with the list of files that gofmt would change
	@bad=$$($(GOFILES) | xargs gofmt -l); \
	if [ -n "$$bad" ]; then echo "not formatted, run 'make fmt':"; echo "$$bad"; exit 1; fi

lint: $(LINT) ## Run golangci-lint
	$(LINT) run ./...
	@for m in $(NESTED); do echo "golangci-lint in $$m"; (cd $$m && $(LINT) run --config $(CURDIR)/.golangci.yml ./...); done

arch: ## Check import rules, house habits and the table of lessons
	go test ./internal/archtest

# There is no build before it: vet compiles every package, and the tests link the programs that they run.
test: setup fmt-check vet lint ## Everything a change must pass: format, vet, lint, architecture, tests with -race
	@if [ "$$(go env CGO_ENABLED)" != 1 ]; then echo "the race detector needs a C compiler: install gcc or clang"; exit 1; fi
	@for m in $(NESTED); do echo "go test -race ./... in $$m"; (cd $$m && go test -race -timeout $(TIMEOUT) $(TEST_FLAGS) ./...); done
	go mod verify
	go test -race -json -timeout $(TIMEOUT) -p $(PACKAGES) -parallel $(PARALLEL) $(TEST_FLAGS) $(LONGEST) ./... | go run ./test/summary
	go run ./test/torture/cmd/mutants -quick
	@echo "make test took $$(( $$(date +%s) - $(START) ))s"

cover: ## Measure coverage over all packages, and show the total
	go test -coverpkg=./... -coverprofile=cover.out ./...
	@go tool cover -func=cover.out | tail -1
	@echo "see it with: go tool cover -html=cover.out"

console: ## Build the console anew: types from admin/openapi.json, then console/dist, which is committed
	scripts/console.sh run types
	scripts/console.sh run build

console-pictures: ## Take the pictures of docs/images anew, from a run of the tests of the console
	FERRY_CONSOLE_SPECS="walk messages" FERRY_CONSOLE_SHOTS=$(CURDIR)/console/shots go test -count=1 -timeout $(TIMEOUT) -run TestBrowser ./console
	@for p in overview-light:overview topic-charts-dark:topic message-light:message kinds-light:dead kinds-zh:dead.zh-CN edit-light:edit bulk-light:bulk; do \
		cp console/shots/$${p%%:*}.png docs/images/console-$${p##*:}.png; done

fuzz: ## Fuzz every decoder for FUZZTIME (10s) each
	@scripts/fuzz.sh $(FUZZTIME)

bench: ## Measure brokers beside their peers, one after the other (BROKER=memory,disk,redis,redisstream,kafka,gateway or all QUICK=1 ONLY=pickup,delay)
	@if [[ ",$(or $(BROKER),all)," =~ ,(kafka|all), ]]; then scripts/kafka.sh; fi
	@if [[ ",$(or $(BROKER),all)," =~ ,(gateway|all), ]]; then scripts/elasticmq.sh; fi
	cd bench && go run ./cmd/bench -broker $(or $(BROKER),all) $(if $(filter-out 0,$(QUICK)),-quick) $(if $(ONLY),-only $(ONLY))

bench-compare: ## Compare two git refs by benchstat (PKG=./driver/memory OLD=HEAD NEW=. BENCH=. COUNT=10 OUT=results/compare/memory.txt, for the page of benchmarks)
	cd bench && go run ./cmd/compare -old $(or $(OLD),HEAD) -new $(or $(NEW),.) -pkg "$(PKG)" -bench "$(or $(BENCH),.)" -count $(or $(COUNT),10) $(if $(OUT),-out "$(OUT)")

torture: ## Break things under load and check every promise (BROKER FAULT SEED MINUTES); FAULT=spool: producers with a spool and their Redis (OUTAGES); FAULT=wecom: pulls of customer service (BROKER MESSAGES); FAULT=notify: notifications (MESSAGES)
	@if [[ "$(BROKER)" == kafka* ]]; then scripts/kafka.sh; fi
	@if [[ "$(FAULT)" == wecom ]]; then scripts/kafka.sh; FERRY_TORTURE_WECOM=$(or $(MESSAGES),100000) exec go test -count=1 -v -timeout 60m -run '(TestNothingIsLost|TestKilledPullers|TestNoisyUsers)$(if $(BROKER),/^$(BROKER)$$)' ./wecom; fi; \
	if [[ "$(FAULT)" == spool ]]; then FERRY_TORTURE_SPOOL=$(or $(OUTAGES),50) exec go test -count=1 -v -timeout 60m -run 'TestKills$$' ./spool/spooldisk; fi; \
	if [[ "$(FAULT)" == notify ]]; then FERRY_TORTURE_NOTIFY=$(or $(MESSAGES),100000) exec go test -count=1 -v -timeout 60m -run TestEverythingIsKilled ./notify; fi; \
	set -x; go run ./test/torture/cmd/torture -broker $(or $(BROKER),memory) -fault $(or $(FAULT),all) -seed $(or $(SEED),1) -minutes $(or $(MINUTES),1)

mutants: ## Plant every known bug; each must be caught (BROKER=memory|redis|redisstream|kafka)
	@if [[ "$(BROKER)" == kafka* ]]; then scripts/kafka.sh; fi
	go run ./test/torture/cmd/mutants -broker $(or $(BROKER),memory)

soak: ## Run long, fail on growth, plot to soak.html (BROKER MINUTES)
	go run ./test/torture/cmd/soak -broker $(or $(BROKER),memory) -minutes $(or $(MINUTES),60)

test-console-all: ## The console on disk and then on Redis, every screen in every look, a million messages; minutes
	go test -count=1 -timeout $(TIMEOUT) -run TestBrowser -v ./console
	FERRY_CONSOLE_ALL=1 go test -count=1 -timeout $(TIMEOUT) -run TestBrowser -v ./console

test-kafka: ## The tests of the Kafka driver alone, on a real broker
	scripts/kafka.sh
	go test -race -timeout $(TIMEOUT) -parallel $(PARALLEL) $(TEST_FLAGS) ./internal/kafkatest ./driver/kafka

test-failover: ## Kill each of three Kafka brokers while messages flow; minutes, and four JVMs
	scripts/kafka.sh
	FERRY_FAILOVER_KILLS=3 go test -race -timeout $(TIMEOUT) -run TestBrokerKilled -count=1 -v ./driver/kafka

test-failpoints: ## Kill a process at every step of every operation, on every broker with processes; minutes
	scripts/kafka.sh
	FERRY_FAILPOINTS=all go test -timeout 60m -parallel 16 -count=1 -v ./test/torture/failpoints

vuln: ## Look for known vulnerabilities in what is linked (VULNDB=file:///... where the public database cannot be reached)
	@scripts/vuln.sh $(VULNDB)

generate: ## Run all code generators, and make docs/cli.md, docs/urls.md and the code in docs/howto
	go generate ./...
	go test ./cmd/ferry -run 'TestReference|TestHowtoSnippets' -update
	go test ./open -run TestReference -update

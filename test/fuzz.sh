#!/bin/sh
# Runs every fuzzer of the module for FUZZTIME each, one after another, and prints the totals.
set -u
GO=${GO:-go}
FUZZTIME=${FUZZTIME:-10s}
passed=0
failed=0
for package in $($GO list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./...); do
	for fuzzer in $($GO test -list "^Fuzz" "$package" | grep "^Fuzz"); do
		echo "== $package $fuzzer"
		if $GO test -run "^\$" -fuzz "^$fuzzer\$" -fuzztime "$FUZZTIME" "$package"; then
			passed=$((passed + 1))
		else
			failed=$((failed + 1))
		fi
	done
done
echo "fuzz: $passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ] && [ "$passed" != 0 ]

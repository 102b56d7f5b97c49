#!/bin/sh
# Runs every fuzzer of the module for FUZZTIME each, one after another, and prints the totals.
set -u
GO=${GO:-go}
FUZZTIME=${FUZZTIME:-10s}
passed=0
failed=0
for file in $(git ls-files '*_test.go' | xargs grep -l '^func Fuzz'); do
	for fuzzer in $(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$file"); do
		echo "== $file $fuzzer"
		if $GO test -run "^\$" -fuzz "^$fuzzer\$" -fuzztime "$FUZZTIME" "./$(dirname "$file")"; then
			passed=$((passed + 1))
		else
			failed=$((failed + 1))
		fi
	done
done
echo "fuzz: $passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ] && [ "$passed" != 0 ]

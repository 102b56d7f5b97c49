#!/bin/sh
# Runs every fuzzer of the module for FUZZTIME each, one a processor at a time, and prints the totals.
set -u
GO=${GO:-go}
FUZZTIME=${FUZZTIME:-10s}
export GO FUZZTIME
results=$(mktemp)
export results
trap 'rm -f "$results"' EXIT

git ls-files '*_test.go' | xargs grep -l '^func Fuzz' | while read -r file; do
	sed -n "s#^func \(Fuzz[A-Za-z0-9_]*\)(.*#$(dirname "$file") \1#p" "$file"
done | xargs -n 2 -P "$(nproc 2>/dev/null || echo 2)" sh -c '
	out=$($GO test -run "^\$" -fuzz "^$1\$" -fuzztime "$FUZZTIME" -fuzzminimizetime 20x -parallel 1 "./$0" 2>&1)
	code=$?
	printf "== %s %s\n%s\n" "$0" "$1" "$out"
	echo "$code" >>"$results"
'
passed=$(grep -c '^0$' "$results")
failed=$(grep -vc '^0$' "$results")
echo "fuzz: $passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ] && [ "$passed" != 0 ]

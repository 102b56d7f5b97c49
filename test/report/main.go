// Command report reads the output of `go test -json` on standard input and prints it for people: one line a package,
// what failed in full, what was skipped and why, and at the end the totals as "name: N passed, N failed, N skipped".
// It exits with 1 when a test or a package failed, or when no test ran at all.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	name := flag.String("name", "test", "the suite's name, which stands before its totals")
	flag.Parse()
	ok, err := run(os.Stdin, os.Stdout, *name)
	if err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

// run copies a summary of the events in r to w and says whether everything passed.
func run(r io.Reader, w io.Writer, name string) (bool, error) {
	out := bufio.NewWriter(w)
	s := newSummary(out)
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 64<<10), 16<<20)
	for lines.Scan() {
		s.line(lines.Bytes())
	}
	if err := lines.Err(); err != nil {
		return false, fmt.Errorf("read test events: %w", err)
	}
	ok := s.finish(name)
	return ok, out.Flush()
}
